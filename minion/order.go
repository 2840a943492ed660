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

// orderDir is the directory of the environment "base" that has the files of orders.
const orderDir = "_order"

// dropOrderFiles removes the copies of the files that an order brought along: the master has them no more when
// the order has ended. An empty name is no order.
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

// orderPillar has a job see the pillar that its order brought along, which the minion does not keep: it is
// fetched when a function asks for the pillar first. If that fails, the functions see the minion's own.
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
