// Package rsync is Salt's state module "rsync": a directory as rsync copies it (salt/states/rsync.py). It works through the execution
// module rsync.
package rsync

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/states"
)

func init() { states.Register(Module) }

// Module is Salt's "rsync".
var Module = &states.Module{Name: "rsync", Doc: "Directories as rsync copies them.", Needs: "rsync.version", Otherwise: "Command not found: rsync",
	Funcs: []states.Def{{Name: "synchronized", Doc: synchronizedDoc, Params: []modules.Param{
		{Name: "name"}, {Name: "source"}, {Name: "delete", Default: false}, {Name: "force", Default: false}, {Name: "update", Default: false},
		{Name: "passwordfile", Optional: true, Secret: true}, {Name: "exclude", Optional: true}, {Name: "excludefrom", Optional: true},
		{Name: "prepare", Default: false}, {Name: "dryrun", Default: false}, {Name: "additional_opts", Optional: true},
	}, Run: synchronized}}}

const synchronizedDoc = `Have a directory with what is in another one.

name, source
    the directory, and the one to copy, which may be on another host or below salt://
delete, force, update
    remove what the source lacks; remove directories that are not empty; leave files alone that are newer
passwordfile, exclude, excludefrom
    the options of rsync
prepare
    create the directory if it does not exist
dryrun
    change nothing, as in test mode
additional_opts
    a list of further options
`

func synchronized(ctx context.Context, c *states.Call) (*states.Result, error) {
	ret := c.Result()
	_, err := os.Stat(c.Path(c.Name()))
	if err != nil && !c.Bool("prepare") && !c.Bool("force") {
		return ret.As(states.False, "Destination directory "+c.Name()+" was not found.")
	}
	if err != nil && c.Bool("prepare") {
		if err := os.MkdirAll(c.Path(c.Name()), 0o777); err != nil {
			return nil, modules.OSError(err)
		}
	}
	kwargs := map[string]any{"dryrun": c.Value("dryrun")}
	for _, name := range [...]string{"delete", "force", "update", "passwordfile", "exclude", "excludefrom", "additional_opts"} {
		kwargs[name] = c.Value(name)
	}
	if c.Test() {
		kwargs["dryrun"] = true
	}
	v, err := c.ExecKw(ctx, "rsync.rsync", []any{c.Value("source"), c.Value("name")}, kwargs)
	if err != nil {
		return nil, err
	}
	result, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("cannot read the answer of rsync.rsync")
	}
	stdout := pytext.Str(result["stdout"])
	switch {
	case pytext.Truth(kwargs["dryrun"]):
		return ret.As(states.None, summary(stdout))
	case pytext.Truth(result["retcode"]):
		return ret.As(states.False, pytext.Str(result["stderr"]))
	}
	if copied, deleted := changes(stdout); copied != nothing || deleted != nothing {
		ret.Changes["copied"], ret.Changes["deleted"] = copied, deleted
	}
	return ret.As(states.True, summary(stdout))
}

// summary returns the last lines of rsync's output, in the form of a list.
func summary(stdout string) string {
	last := stdout[strings.LastIndex(stdout, "\n\n")+1:]
	lines := strings.Split(strings.ReplaceAll(strings.TrimPrefix(last, "\n"), "  ", "\n"), "\n")
	return "- " + strings.Join(slices.DeleteFunc(lines, func(s string) bool { return s == "" }), "\n- ")
}

// nothing stands for an empty list of files.
const nothing = "N/A"

// changes returns rsync's lines about files: those between the first line and an empty line.
func changes(stdout string) (copied, deleted string) {
	var come, gone []string
	lines, _, _ := strings.Cut(stdout, "\n\n")
	for _, line := range strings.Split(lines, "\n")[1:] {
		if name, ok := strings.CutPrefix(line, "deleting "); ok {
			gone = append(gone, name)
		} else {
			come = append(come, line)
		}
	}
	return listed(come), listed(gone)
}

func listed(lines []string) string {
	slices.Sort(lines)
	return cmp.Or(strings.Join(lines, "\n"), nothing)
}
