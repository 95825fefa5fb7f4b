occq launches -d m.db --csv -n 2000 -o kernel,achieved,achieved_ci95,elapsed,elapsed_ci95,source | sort | uniq -c
