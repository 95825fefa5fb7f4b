occq launches -d h.db --kernel "tiny|evil" --csv -n 1002 | tail -n 3
