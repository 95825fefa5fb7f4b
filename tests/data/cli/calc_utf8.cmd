LC_ALL=C.UTF-8 occq calc --cc 7.5 --sms 15 --threads 256 --regs 64 --grid 45 | sed "/PHYSICAL LIMITS/,\$d" | tail -31
