// Package cluster is what several equal masters over one database do together: so far, keep their secrets.
package cluster

import "time"

// storeTime bounds one use of the database where no request bounds it.
const storeTime = 2 * time.Minute

// TellSecret is the kind of the message that a secret has a new version.
const (
	TellSecret = "secret"
	tellSecret = TellSecret
)
