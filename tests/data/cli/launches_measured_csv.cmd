occq launches -d m.db --csv -n 1200 -o kernel,achieved,error,elapsed,elapsed_error,source | sort | uniq -c
