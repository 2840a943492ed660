package keys

import "time"

// Fresh is how long remembered keys are used without asking the database; SetFresh changes it for one store.
const Fresh = freshTime

func (s *Store) SetFresh(d time.Duration) { s.back.(*shared).fresh = d }
