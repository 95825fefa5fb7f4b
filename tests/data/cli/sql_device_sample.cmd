occq sql -d m.db --csv "SELECT * FROM device_sample WHERE device_id = 1 AND start_ns >= 1700000000500000000"
