occq show -d h.db evil
