package states

import (
	"context"
	"fmt"

	"github.com/brine-salt/brine/modules/pyobj"
)

// A listener is a chunk that listens to others. A chunk with listen is named by its state and id, one that a
// listen_in names by whatever that says, which may also be a name.
type listener struct {
	state, id string
	to        []any
}

// isNamed reports whether a state and an id, name or state stand for the chunk.
func (l *Low) isNamed(state, id string) bool {
	return l.state == state && (l.id == id || l.name == id || l.state == id)
}

// anyLow reports whether a state and an id stand for any chunk.
func anyLow(chunks []*Low, state, id string) bool {
	for _, c := range chunks {
		if c.isNamed(state, id) {
			return true
		}
	}
	return false
}

// findListeners collects the listen and listen_in of all chunks.
func findListeners(chunks []*Low) []listener {
	var list []listener
	for _, chunk := range chunks {
		if v := chunk.d.Value("listen"); v != nil {
			list = append(list, listener{chunk.state, chunk.id, listItems(v)})
		}
		for _, in := range listItems(chunk.d.Value("listen_in")) {
			d, ok := in.(*pyobj.Dict)
			if !ok {
				continue
			}
			for k, v := range d.All() {
				list = append(list, listener{pyobj.Str(k), pyobj.Str(v), []any{pyobj.NewDict(chunk.state, chunk.id)}})
			}
		}
	}
	return list
}

// callListen runs mod_watch of the states that listen to one that changed (State.call_listen). Listeners run after
// all states, where watch runs in place: a service that listens to ten files is restarted once, at the end. A
// reference to a chunk that does not exist becomes a failed record.
func (r *Run) callListen(ctx context.Context, chunks []*Low, running *results) error {
	var watchers []*Low
	errs := newResults()
	lost := func(state, id string) {
		errs.set("Listen_Error_|-listen_"+id+"_|-listen_"+state+"_|-Listen_Error", record{
			"comment": fmt.Sprintf("Referenced state %s: %s does not exist", state, id), "name": "listen_" + state + ":" + id,
			"result": false, "changes": map[string]any{}})
	}
	for _, l := range findListeners(chunks) {
		for _, to := range l.to {
			d, ok := to.(*pyobj.Dict)
			if !ok {
				name := pyobj.Str(to)
				for _, chunk := range chunks {
					if chunk.id == name || chunk.name == name {
						d = pyobj.NewDict(chunk.state, chunk.id)
						break
					}
				}
				if d == nil {
					continue
				}
			}
			for k, v := range d.All() {
				state, id := pyobj.Str(k), pyobj.Str(v)
				if !anyLow(chunks, state, id) {
					lost(state, id)
					continue
				}
				for _, source := range chunks {
					rec := running.get(source.Tag())
					if !source.isNamed(state, id) || rec == nil || !hasChanges(rec) {
						continue
					}
					if !anyLow(chunks, l.state, l.id) {
						lost(l.state, l.id)
						continue
					}
					watchers = append(watchers, watchersOf(chunks, l)...)
				}
			}
		}
	}
	more, err := r.callChunks(ctx, watchers)
	if err != nil {
		return err
	}
	running.update(more)
	for _, tag := range errs.tags {
		errs.m[tag]["__run_num__"] = r.num
		r.num++
	}
	running.update(errs)
	return nil
}

// watchersOf returns the mod_watch chunks of a listener. Their requisites are removed, since those were met when
// the state itself ran.
func watchersOf(chunks []*Low, l listener) []*Low {
	var list []*Low
	for _, chunk := range chunks {
		if !chunk.isNamed(l.state, l.id) {
			continue
		}
		low := chunk.shallowCopy()
		low.Set("sfun", chunk.fun)
		low.Set("fun", "mod_watch")
		low.Set("__id__", "listener_"+chunk.id)
		for _, key := range low.Keys() {
			if isRequisite(key) {
				low.Delete(key)
			}
		}
		list = append(list, low)
	}
	return list
}

// callBeacons runs mod_beacon of the states that have a beacon argument (State.call_beacons).
func (r *Run) callBeacons(ctx context.Context, chunks []*Low, running *results) error {
	var beacons []*Low
	for _, chunk := range chunks {
		if !chunk.Has("beacon") {
			continue
		}
		low := chunk.shallowCopy()
		low.Set("sfun", chunk.fun)
		low.Set("fun", "mod_beacon")
		low.Set("__id__", "beacon_"+chunk.id)
		beacons = append(beacons, low)
	}
	if beacons == nil {
		return nil
	}
	more, err := r.callChunks(ctx, beacons)
	if err != nil {
		return err
	}
	running.update(more)
	return nil
}
