"""The RayCronJob controller: a RayJob each time the schedule says so."""
