occq what-if -d h.db --gpu t4 --run 99
