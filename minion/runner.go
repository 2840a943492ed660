package minion

import (
	"github.com/brine-salt/brine/internal/modkit/runcmd"
	"github.com/brine-salt/brine/modules"
)

// NewRunner returns a runner for Options.Runner. Programs run in a session of their own and end with their job.
func NewRunner() modules.Runner { return &runcmd.Runner{} }
