occq show -d h.db nosuchkernel
