occq sql -d m.db --csv "SELECT * FROM device_sample WHERE device = 1 AND start >= 1700000000500000000"
