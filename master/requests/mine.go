package requests

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/master/cache"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

// maxMineFunctions limits the mine of one minion, besides cache.MaxEntry.
const maxMineFunctions = 4096

// Keys of a mine value with access rules (salt/utils/mine.py).
const (
	mineACL  = "__saltmine_acl__"
	mineData = "__data__"
)

// Minions provides the minions to Mine.
type Minions interface {
	// Match returns the accepted minions that a target matches.
	Match(tgtType string, tgt any) ([]string, error)
	// Neighbours returns those of ids that a minion may see.
	Neighbours(ctx context.Context, id string, ids []string) ([]string, error)
	// Means reports whether a target matches a minion.
	Means(tgtType string, tgt any, id string) bool
}

// Mine answers minions' requests to the mine.
type Mine struct {
	Cache   *cache.Cache
	Minions Minions
	// Access restricts which minions may read which functions of others; nil allows all.
	Access *Access
	Log    *slog.Logger
	// Ignore discards what minions store (Salt's option minion_data_cache: False).
	Ignore bool
}

// Store answers _mine: it adds data to the minion's mine. With clear the data replaces the old content; stock
// masters intend that and fail at it.
func (m *Mine) Store(_ context.Context, v protocol.Verified) (any, error) {
	data, ok := payload.Map(v.Load()["data"])
	if !ok {
		return false, nil
	}
	if m.Ignore {
		return true, nil
	}
	err := m.Cache.ChangeMine(v.ID(), func(mine map[string]any) bool {
		if pytext.Truth(v.Load()["clear"]) {
			clear(mine)
		}
		maps.Copy(mine, data)
		return len(mine) <= maxMineFunctions
	})
	return err == nil, err
}

// Delete answers _mine_delete: it removes one function from the minion's own mine.
func (m *Mine) Delete(_ context.Context, v protocol.Verified) (any, error) {
	fun, ok := payload.Text(v.Load()["fun"])
	if !ok {
		return false, nil
	}
	err := m.Cache.ChangeMine(v.ID(), func(mine map[string]any) bool {
		_, has := mine[fun]
		delete(mine, fun)
		return has
	})
	return err == nil, err
}

// Flush answers _mine_flush: it empties the minion's own mine. The answer is whether it had any content.
func (m *Mine) Flush(_ context.Context, v protocol.Verified) (any, error) {
	some := false
	err := m.Cache.ChangeMine(v.ID(), func(mine map[string]any) bool {
		some = len(mine) > 0
		clear(mine)
		return some
	})
	return some && err == nil, err
}

// Get answers _mine_get: it returns mine values of other minions. A pillar target matches exactly, so that
// patterns cannot be used to guess pillar values.
func (m *Mine) Get(ctx context.Context, v protocol.Verified) (any, error) {
	load := v.Load()
	funs, many := mineFunctions(load["fun"])
	funs = slices.DeleteFunc(funs, func(f string) bool { return !m.mayGet(v.ID(), f) })
	tgt, has := load["tgt"]
	if len(funs) == 0 || !has {
		return map[string]any{}, nil
	}
	tgtType := fields.Text(load, "tgt_type")
	if tgtType == "" {
		tgtType = fields.Text(load, "expr_form")
	}
	switch strings.ToLower(tgtType) {
	case "":
		tgtType = target.TypeGlob
	case target.TypePillar, target.TypePillarPCRE:
		tgtType = target.TypePillarExact
	case target.TypeCompound:
		tgtType = target.TypeCompoundPillarExact
	}
	ids, err := m.Minions.Match(tgtType, tgt)
	if err != nil {
		m.Log.Debug("Mine target refused", "minion", v.ID(), "err", err)
		return map[string]any{}, nil
	}
	if ids, err = m.Minions.Neighbours(ctx, v.ID(), ids); err != nil {
		return map[string]any{}, err
	}
	out := make(map[string]any)
	mines := m.Cache.MineReader(ids)
	for _, id := range ids {
		mine := mines.Mine(id)
		for _, fun := range funs {
			value, ok := mine[fun]
			if !ok {
				continue
			}
			if value, ok = m.visible(value, v.ID()); !ok {
				continue
			}
			if !many {
				out[id] = value
				continue
			}
			of, _ := out[fun].(map[string]any)
			if of == nil {
				of = make(map[string]any)
				out[fun] = of
			}
			of[id] = value
		}
	}
	return out, mines.Err()
}

// mineFunctions parses fun: one name, a comma-separated list or an array. many is false for one plain name,
// whose answer has no level of names.
func mineFunctions(v any) (funs []string, many bool) {
	if s, ok := payload.Text(v); ok {
		for _, f := range strings.Split(s, ",") {
			if f != "" && !slices.Contains(funs, f) {
				funs = append(funs, f)
			}
		}
		return funs, len(funs) > 1
	}
	list, _ := payload.List(v)
	for _, x := range list {
		if f, ok := payload.Text(x); ok && !slices.Contains(funs, f) {
			funs = append(funs, f)
		}
	}
	return funs, true
}

// mayGet reports whether a minion may read a function's values of others.
func (m *Mine) mayGet(id, fun string) bool { return m.Access == nil || m.Access.Allows(id, fun) }

// visible unwraps a value and reports whether the asking minion may see it.
func (m *Mine) visible(value any, asking string) (any, bool) {
	entry, ok := payload.Map(value)
	if !ok {
		return value, true
	}
	if _, wrapped := entry[mineACL]; !wrapped {
		return value, true
	}
	if tgt, limited := entry["allow_tgt"]; limited {
		tgtType := fields.Text(entry, "allow_tgt_type")
		if tgtType == "" {
			tgtType = target.TypeGlob
		}
		if !m.Minions.Means(tgtType, tgt, asking) {
			return nil, false
		}
	}
	return entry[mineData], true
}
