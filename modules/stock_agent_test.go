//go:build interop

package modules_test

import (
	"path/filepath"
	"testing"

	"github.com/brine-salt/brine/minion/fileclient"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/cpmod"
	"github.com/brine-salt/brine/modules/data"
	"github.com/brine-salt/brine/modules/defaults"
	"github.com/brine-salt/brine/modules/environ"
	"github.com/brine-salt/brine/modules/event"
	"github.com/brine-salt/brine/modules/hashutil"
	"github.com/brine-salt/brine/modules/matchmod"
	"github.com/brine-salt/brine/modules/minemod"
	"github.com/brine-salt/brine/modules/modulestest"
	"github.com/brine-salt/brine/modules/random"
	"github.com/brine-salt/brine/modules/saltutil"
	"github.com/brine-salt/brine/modules/slsutil"
	"github.com/brine-salt/brine/modules/status"
)

// agentModules are the modules that ask the minion and its master rather than the host.
func agentModules() []*modules.Module {
	return []*modules.Module{cpmod.Module, data.Module, defaults.Module, environ.Module, event.Module, hashutil.Module, matchmod.Module, minemod.Module, random.Module, saltutil.Module, slsutil.Module, status.Module}
}

// agentParts gives our side a file client on the same roots and the same cache as stock's.
func (s *stock) agentParts(t *testing.T, e *modules.Env) {
	t.Helper()
	roots := map[string][]string{}
	for env, list := range s.opts["file_roots"].(map[string]any) {
		for _, dir := range list.([]any) {
			roots[env] = append(roots[env], dir.(string))
		}
	}
	e.Agent = &modulestest.Agent{}
	e.Files = fileclient.New(fileclient.Options{Roots: roots, CacheDir: filepath.Join(s.scratch, "cache"), HashType: s.opts["hash_type"].(string)})
}
