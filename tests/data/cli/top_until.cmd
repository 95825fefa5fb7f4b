occq top -d h.db --until '2023-11-14 22:13:21' -o kernel,launches,min,max,mean
