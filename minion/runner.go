package minion

import (
	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/modules"
)

// NewRunner is the runner for [Options].Runner: programs run in a session of their own and end with their job.
func NewRunner() modules.Runner { return &runcmd.Runner{} }
