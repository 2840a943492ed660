// Package chef is Salt's execution module "chef": runs of the Chef client of this host. Salt's source: salt/modules/chef.py.
package chef

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// Compatibility.
//
// chef.client, chef.solo differ: several keyword arguments are passed in the order of their names.

func available(e *modules.Env) (bool, string) {
	if e.Which("chef-client") == "" {
		return false, "Cannot load chef module: chef-client not found"
	}
	return true, ""
}

func client(ctx context.Context, c *modules.Call) (any, error) {
	var more []string
	if c.Bool("localmode") {
		more = []string{"--local-mode"}
	}
	return run(ctx, c, "chef-client", []string{"--once"}, more)
}

func solo(ctx context.Context, c *modules.Call) (any, error) {
	return run(ctx, c, "chef-solo", nil, nil)
}

// run runs a program of Chef: first comes before the log file, last behind the options that all programs have.
func run(ctx context.Context, c *modules.Call, program string, first, last []string) (any, error) {
	if err := saltcmd.Needs(c, program); err != nil {
		return nil, err
	}
	log := c.Str("logfile")
	if c.Value("logfile") == nil {
		var err error
		if log, err = defaultLog(c, program); err != nil {
			return nil, err
		}
	}
	words := append([]string{program, "--no-color"}, first...)
	words = append(words, `--logfile "`+log+`"`, "--format doc")
	if c.Bool("whyrun") {
		words = append(words, "--why-run")
	}
	words = append(words, last...)
	for _, k := range slices.Sorted(maps.Keys(c.Keywords)) {
		if !strings.HasPrefix(k, "__") {
			words = append(words, "--"+k+" "+pytext.Str(c.Keywords[k]))
		}
	}
	// The text is split at blanks and quotes; no shell interprets it.
	return c.ExecKw(ctx, "cmd.run_all", []any{strings.Join(words, " ")}, map[string]any{"python_shell": false})
}

// defaultLog returns the default log file of a program: a fixed path, or on Windows a new file in the minion's cache.
func defaultLog(c *modules.Call, program string) (string, error) {
	if runtime.GOOS != "windows" {
		return "/var/log/" + program + ".log", nil
	}
	cache, _ := c.Opt("cachedir").(string)
	dir := filepath.Join(cache, "tmp")
	if err := os.Mkdir(c.Path(dir), 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", modules.OSError(err)
	}
	f, err := os.CreateTemp(c.Path(dir), program+"*.log")
	if err != nil {
		return "", modules.OSError(err)
	}
	return f.Name(), f.Close()
}
