for by in job account partition; do COLUMNS=80 occq top -d h.db --by $by; done
