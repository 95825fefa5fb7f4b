occq calc --gpu gtx1080 --threads 32x24 --regs 39 | sed "/OCCUPANCY of a full wave/,\$d"
