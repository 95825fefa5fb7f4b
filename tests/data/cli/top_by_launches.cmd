occq top -d h.db --by launches -o kernel,launches
