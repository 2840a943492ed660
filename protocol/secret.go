package protocol

import "github.com/brine-salt/brine/protocol/payload"

// SecretField is the field of a published job, and of what a master stores of it, that is true if the job's
// arguments are secret. A minion of ours then keeps no clear text of them on the disk; others ignore it.
const SecretField = "brine_secret"

// SealedText stands in place of secret arguments where a job is shown.
const SealedText = "<sealed>"

// OrderField is the field of a published job that tells our minion what the order behind it carries: a map as
// Carried has it. Others ignore it.
const OrderField = "brine_order"

// Carried is what an order brings along for its minion, beside the job.
type Carried struct {
	// Files is the name of its directory below salt://_order, empty if it has no files.
	Files string
	// Pillar means that the master merges something into the minion's pillar while the job runs.
	Pillar bool
}

// Field is the value of OrderField.
func (c Carried) Field() map[string]any { return map[string]any{"files": c.Files, "pillar": c.Pillar} }

// Carried reads OrderField; the zero value is a job that brings nothing.
func (j Job) Carried() (c Carried) {
	m, _ := payload.Map(j.Raw[OrderField])
	c.Files, _ = payload.Text(m["files"])
	c.Pillar, _ = m["pillar"].(bool)
	return c
}

// Secret reports whether a job's arguments are secret.
func (j Job) Secret() bool { return j.Raw[SecretField] == true }
