occq diff -d h.db run:1
