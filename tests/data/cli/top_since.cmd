occq top -d h.db --since '2023-11-14 23:00' -o kernel,launches,device_id
