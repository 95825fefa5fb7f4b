for by in cause config gpu kernel label rank run stream user; do occq top -d h.db --by $by -n 1 -o $by,time --csv 2>&1; done
