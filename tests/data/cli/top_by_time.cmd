occq top -d h.db --by time -n 2 -o kernel,time,share
