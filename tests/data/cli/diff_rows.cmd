occq diff run:1 run:2 -d h.db --force --rows | tail -12
