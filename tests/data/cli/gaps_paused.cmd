occq gaps -d p.db --run 2 -o +long_gaps,unrecorded
