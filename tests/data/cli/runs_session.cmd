occq runs -d h.db --session 000102030405060708090a0b0c0d0e0f -o run,devices,user,host,lost_causes
