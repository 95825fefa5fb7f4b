occq show -d h.db too_many; occq show -d h.db too_many --all
