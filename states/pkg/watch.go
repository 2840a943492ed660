package pkg

import (
	"context"
	"os"

	"github.com/brine-salt/brine/internal/modkit/pkglist"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
)

// modInit creates the mark that makes the first installation of the run update the indexes.
func modInit(ctx context.Context, c *states.Call) (bool, error) {
	done := true
	if pkglist.Has(c.Call, "pkg.ex_mod_init") {
		v, err := c.Exec(ctx, "pkg.ex_mod_init", c.Low.Plain())
		if err != nil {
			return false, err
		}
		done = pytext.Truth(v)
	}
	if fun := c.Low.Fun(); fun != "installed" && fun != "latest" {
		return false, nil
	}
	f, err := os.OpenFile(markFile(c), os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		c.Logger().Warn("Cannot write the mark for a refresh", "err", err)
		return done, nil
	}
	return done, f.Close()
}

// modAggregate puts the packages of the chunks that do the same into this one.
func modAggregate(_ context.Context, c *states.Call, chunks []*states.Low) error {
	low := c.Low
	switch low.Fun() {
	case "installed", "latest", "removed", "purged":
	default:
		return nil
	}
	kind := ""
	all := pyobj.NewList()
	for _, chunk := range chunks {
		if c.Running(chunk.Tag()) != nil || chunk.State() != "pkg" || chunk.Has("__agg__") || chunk.Fun() != low.Fun() ||
			!pyobj.Equal(chunk.Ordered("fromrepo"), low.Ordered("fromrepo")) {
			continue
		}
		switch {
		case chunk.Has("sources"):
			if kind == "" {
				kind = "sources"
			}
			if kind == "sources" {
				all.Items = append(all.Items, members(chunk.Ordered("sources"))...)
				chunk.Set("__agg__", true)
			}
		case !chunk.Has("hold"):
			if kind == "" {
				kind = "pkgs"
			}
			if kind == "pkgs" && chunk.Has("pkgs") {
				all.Items = append(all.Items, members(chunk.Ordered("pkgs"))...)
				chunk.Set("__agg__", true)
			} else if kind == "pkgs" && chunk.Has("name") {
				if version := chunk.Ordered("version"); version != nil {
					all.Items = append(all.Items, pyobj.NewDict(chunk.Ordered("name"), version))
				} else {
					all.Items = append(all.Items, chunk.Ordered("name"))
				}
				chunk.Delete("version")
				chunk.Set("__agg__", true)
			}
		}
	}
	if len(all.Items) == 0 {
		return nil
	}
	if low.Has(kind) {
		all.Items = append(members(low.Ordered(kind)), all.Items...)
	}
	low.Set(kind, all)
	return nil
}

func members(v any) []any {
	if list, ok := v.(*pyobj.List); ok {
		return append([]any(nil), list.Items...)
	}
	return nil
}

func modWatch(ctx context.Context, c *states.Call) (*states.Result, error) {
	sfun := pytext.Str(c.Keywords["sfun"])
	switch sfun {
	case "purged":
		return purged(ctx, c)
	case "latest":
		return latest(ctx, c)
	case "removed":
		return removed(ctx, c)
	case "installed":
		return installed(ctx, c)
	}
	return c.Result().As(states.False, "pkg."+sfun+" does not work with the watch requisite")
}
