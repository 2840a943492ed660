package master

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/brine-salt/brine/internal/pytext"
	"github.com/brine-salt/brine/master/internal/fields"
	"github.com/brine-salt/brine/protocol"
	"github.com/brine-salt/brine/protocol/payload"
	"github.com/brine-salt/brine/protocol/target"
)

// maxMineFunctions bounds the mine of one minion, beside cache.MaxEntry.
const maxMineFunctions = 4096

// Keys of a mine value with access rules (salt/utils/mine.py).
const (
	mineACL  = "__saltmine_acl__"
	mineData = "__data__"
)

// reqMine stores what a minion gives to its mine. With clear it replaces the old content; stock masters mean the same and
// fail at it.
func (m *Master) reqMine(_ context.Context, v protocol.Verified) (any, error) {
	data, ok := payload.Map(v.Load()["data"])
	if !ok {
		return false, nil
	}
	if m.opts.NoMinionDataCache {
		return true, nil
	}
	err := m.cache.ChangeMine(v.ID(), func(mine map[string]any) bool {
		if pytext.Truth(v.Load()["clear"]) {
			clear(mine)
		}
		maps.Copy(mine, data)
		return len(mine) <= maxMineFunctions
	})
	return err == nil, err
}

// reqMineDelete removes one function from the minion's own mine.
func (m *Master) reqMineDelete(_ context.Context, v protocol.Verified) (any, error) {
	fun, ok := payload.Text(v.Load()["fun"])
	if !ok {
		return false, nil
	}
	err := m.cache.ChangeMine(v.ID(), func(mine map[string]any) bool {
		_, has := mine[fun]
		delete(mine, fun)
		return has
	})
	return err == nil, err
}

// reqMineFlush empties the minion's own mine. The answer is whether there was something in it.
func (m *Master) reqMineFlush(_ context.Context, v protocol.Verified) (any, error) {
	some := false
	err := m.cache.ChangeMine(v.ID(), func(mine map[string]any) bool {
		some = len(mine) > 0
		clear(mine)
		return some
	})
	return some && err == nil, err
}

// reqMineGet gathers mine values of other minions. A target on pillar matches exactly, so that nobody finds out
// pillar values by patterns.
func (m *Master) reqMineGet(ctx context.Context, v protocol.Verified) (any, error) {
	load := v.Load()
	funs, many := mineFunctions(load["fun"])
	if m.mineGet != nil {
		funs = slices.DeleteFunc(funs, func(f string) bool { return !m.mineGet.allows(v.ID(), f) })
	}
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
	ids, _, err := m.expected(tgtType, tgt, "")
	if err != nil {
		m.log.Debug("mine target refused", "minion", v.ID(), "err", err)
		return map[string]any{}, nil
	}
	if ids, _, err = m.neighbours(ctx, v.ID(), ids); err != nil {
		return map[string]any{}, err
	}
	out := make(map[string]any)
	for _, id := range ids {
		mine := m.cache.Mine(id)
		for _, fun := range funs {
			value, ok := mine[fun]
			if !ok {
				continue
			}
			if value, ok = m.mineValue(value, v.ID()); !ok {
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
	return out, nil
}

// mineFunctions reads fun: one name, a comma list or an array. Only one plain name is answered without the level of names.
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

// mineValue unwraps a value and says whether a minion may see it.
func (m *Master) mineValue(value any, asking string) (any, bool) {
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
		if !m.means(tgtType, tgt, asking) {
			return nil, false
		}
	}
	return entry[mineData], true
}
