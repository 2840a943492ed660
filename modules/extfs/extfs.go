// Package extfs is Salt's execution module "extfs". Salt's source: salt/modules/extfs.py.
package extfs

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/modkit/saltcmd"
	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

func available(*modules.Env) (bool, string) {
	return runtime.GOOS != "windows", "The extfs execution module cannot be loaded: only available on non-Windows systems."
}

// The options of mke2fs and tune2fs by their names here.
const (
	makeOptions = " block_size=b check=c direct=D ext_opts=E fragment_size=f force=F blocks_per_group=g number_of_groups=G bytes_per_inode=i " +
		"inode_size=I journal=j journal_opts=J blocks_file=l label=L reserved=m last_dir=M test=n number_of_inodes=N creator_os=o " +
		"opts=O revision=r super=S usage_type=T uuid=U cluster_size=C root_directory=d errors_behavior=e "
	tuneOptions = " max=c count=C error=e extended_opts=E force=f group=g interval=i journal=j journal_opts=J label=L last_dir=M opts=o " +
		"feature=O mmp_check=p reserved=r reserved_percentage=m quota_opts=Q time=T user=u uuid=U "
)

// options returns the keyword arguments as options. True stands for an option without a value.
func options(c *modules.Call, known string) []any {
	var out []any
	for _, k := range slices.Sorted(maps.Keys(c.Keywords)) {
		_, rest, ok := strings.Cut(known, " "+k+"=")
		if !ok {
			continue
		}
		out = append(out, "-"+rest[:1])
		if v := c.Keywords[k]; !strings.EqualFold(pytext.Str(v), "true") {
			out = append(out, v)
		}
	}
	return out
}

func mkfs(ctx context.Context, c *modules.Call) (any, error) {
	cmd := append([]any{"mke2fs", "-F", "-t", c.Value("fs_type")}, options(c, makeOptions)...)
	return run(ctx, c, append(cmd, c.Value("device")), func(line string) bool {
		for _, noise := range [...]string{
			"mke2fs", "Discarding device blocks", "Allocating group tables", "Writing inode tables", "Creating journal", "Writing superblocks",
		} {
			if strings.HasPrefix(line, noise) {
				return false
			}
		}
		return line != ""
	})
}

func tune(ctx context.Context, c *modules.Call) (any, error) {
	cmd := append([]any{"tune2fs"}, options(c, tuneOptions)...)
	return run(ctx, c, append(cmd, c.Value("device")), func(string) bool { return true })
}

// run returns the lines of both streams that are worth it.
func run(ctx context.Context, c *modules.Call, cmd []any, worth func(string) bool) (any, error) {
	r, err := saltcmd.All(ctx, c, cmd...)
	if err != nil {
		return nil, err
	}
	out := []any{}
	for _, line := range pytext.SplitLines(r.Stdout+"\n"+r.Stderr, false) {
		if worth(line) {
			out = append(out, line)
		}
	}
	if !c.Bool("full_return") {
		return out, nil
	}
	m := r.Map()
	m["comment"] = out
	return m, nil
}

func attributes(ctx context.Context, c *modules.Call) (any, error) { return part(ctx, c, "attributes") }
func blocks(ctx context.Context, c *modules.Call) (any, error)     { return part(ctx, c, "blocks") }

func part(ctx context.Context, c *modules.Call, name string) (any, error) {
	m, err := read(ctx, c)
	if err != nil {
		return nil, err
	}
	return m[name], nil
}

func dump(ctx context.Context, c *modules.Call) (any, error) {
	return modules.Answer(read(ctx, c))
}

// read runs dumpe2fs for extfs.dump and parses its output.
func read(ctx context.Context, c *modules.Call) (map[string]any, error) {
	cmd := []any{"dumpe2fs", c.Value("device")}
	if c.Bool("args") {
		cmd = append(cmd, "-"+c.Str("args"))
	}
	text, err := saltcmd.Text(ctx, c, cmd...)
	if err != nil {
		return nil, err
	}
	attrs, groups, group := map[string]any{}, map[string]any{}, map[string]any(nil)
	for _, line := range pytext.SplitLines(text, false) {
		if line == "" || strings.HasPrefix(line, "dumpe2fs") {
			continue
		}
		begins := strings.HasPrefix(line, "Group")
		if group == nil && (!begins || strings.HasPrefix(line, "Group descriptor size")) {
			parts := strings.Split(strings.ReplaceAll(line, "\t", " "), ": ")
			switch {
			case len(parts) < 2:
			case strings.HasPrefix(line, "Filesystem features"):
				attrs[parts[0]] = nested.Anys(strings.Fields(parts[1]))
			default:
				attrs[parts[0]] = pytext.Strip(parts[1])
			}
			continue
		}
		parts := strings.Split(line, ": ")
		switch {
		case begins:
			f := strings.Fields(strings.NewReplacer(":", "", "(", "", ")", "", "[", "", "]", "").Replace(line))
			if len(f) < 4 {
				return nil, modules.IndexError()
			}
			group = map[string]any{"group": f[1], "range": f[3], "extra": []any{}}
			groups["Group "+f[1]] = group
		case strings.Contains(line, "Free blocks:") && len(parts) > 1:
			group["free blocks"] = nested.Anys(strings.Split(parts[1], ", "))
		case strings.Contains(line, "Free inodes:") && len(parts) > 1:
			group["free inodes"] = nested.Anys(strings.Split(parts[1], ", "))
		case strings.Contains(line, "Free blocks:") || strings.Contains(line, "Free inodes:"):
			return nil, modules.IndexError()
		default:
			group["extra"] = append(group["extra"].([]any), pytext.Strip(line))
		}
	}
	return map[string]any{"attributes": attrs, "blocks": groups}, nil
}
