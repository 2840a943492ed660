package protocol

import "github.com/brine-salt/brine/protocol/payload"

// SecretField is a field of a published job and of the stored job: true if the arguments are secret. A brine minion
// then keeps no clear text of them on disk; stock minions ignore it.
const SecretField = "brine_secret"

// SealedText replaces secret arguments where a job is shown.
const SealedText = "<sealed>"

// OrderField is a field of a published job with what the order behind it carries, in the form of [Carried]. Stock
// minions ignore it.
const OrderField = "brine_order"

// Carried describes what an order carries for its minion beside the job.
type Carried struct {
	// Files is the name of the order's directory below salt://_order, empty if it has no files.
	Files string
	// Pillar is true if the master merges values into the minion's pillar while the job runs.
	Pillar bool
}

// Field returns the value of OrderField.
func (c Carried) Field() map[string]any { return map[string]any{"files": c.Files, "pillar": c.Pillar} }

// Carried reads OrderField. The zero value means that the job carries nothing.
func (j Job) Carried() (c Carried) {
	m, _ := payload.Map(j.Raw[OrderField])
	c.Files, _ = payload.Text(m["files"])
	c.Pillar, _ = m["pillar"].(bool)
	return c
}

// Secret reports whether the job's arguments are secret.
func (j Job) Secret() bool { return j.Raw[SecretField] == true }
