package minion

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/pyobj"
)

// orderDir is the directory of orders' files in the environment "base".
const orderDir = "_order"

// dropOrderFiles removes the cached copies of an order's files. The master no longer serves them once the order
// has ended. An empty name does nothing.
func (m *Minion) dropOrderFiles(name string) {
	if name == "" || name != filepath.Base(name) || name == ".." || name == "." {
		return
	}
	m.removeOrderFiles(filepath.Join(orderDir, name))
}

func (m *Minion) removeOrderFiles(dir string) {
	if err := os.RemoveAll(filepath.Join(m.settings().cacheDir, "files", "base", dir)); err != nil {
		m.log.Warn("Cannot remove the files of an order", "err", err)
	}
}

// orderPillar makes a job's functions see the order's pillar, which the minion does not cache. It is fetched
// when a function first reads the pillar. If that fails, they see the minion's own pillar.
func (l *link) orderPillar(ctx context.Context, e *modules.Env) {
	fresh := sync.OnceValue(func() *pyobj.Dict {
		p, err := l.freshPillar(ctx, "", "", nil)
		if err != nil {
			l.log.Error(fmt.Sprintf("Cannot fetch the pillar of an order; its functions see the "+
				"one in memory: %v", err))
			return l.orderedPillar(ctx)
		}
		return p
	})
	e.OrderedPillar = fresh
	e.Pillar = sync.OnceValue(func() map[string]any { return pyobj.PlainMap(fresh()) })
}
