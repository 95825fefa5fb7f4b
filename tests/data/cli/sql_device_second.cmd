occq sql -d m.db --csv "SELECT * FROM device_second"
