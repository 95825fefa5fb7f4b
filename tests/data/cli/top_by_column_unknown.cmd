occq top -d h.db --by user -o usr
