occq diff -d h.db run:1 run:2 --markdown --json
