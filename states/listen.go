package states

import (
	"context"
	"fmt"

	"github.com/brine-salt/brine/internal/pyobj"
)

// listener is a chunk, named by state, id and name, that listens to others. A listen_in names it by state and id alone.
type listener struct {
	state, id string
	to        []any
}

// is tells whether a chunk is meant by a state and an id or name.
func (l *Low) is(state, id string) bool {
	return l.state == state && (l.id == id || l.name == id || l.state == id)
}

func anyLow(chunks []*Low, state, id string) bool {
	for _, c := range chunks {
		if c.is(state, id) {
			return true
		}
	}
	return false
}

// listeners collects who listens to what.
func listeners(chunks []*Low) []listener {
	var list []listener
	for _, chunk := range chunks {
		if v := chunk.d.Value("listen"); v != nil {
			list = append(list, listener{chunk.state, chunk.id, items(v)})
		}
		for _, in := range items(chunk.d.Value("listen_in")) {
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

// callListen runs mod_watch of the states that listen to one that changed, after all others (State.call_listen).
func (r *Run) callListen(ctx context.Context, chunks []*Low, running *results) error {
	var watchers []*Low
	errs := newResults()
	lost := func(state, id string) {
		errs.set("Listen_Error_|-listen_"+id+"_|-listen_"+state+"_|-Listen_Error", record{
			"comment": fmt.Sprintf("Referenced state %s: %s does not exist", state, id), "name": "listen_" + state + ":" + id,
			"result": false, "changes": map[string]any{}})
	}
	for _, l := range listeners(chunks) {
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
					if !source.is(state, id) || rec == nil || !changed(rec) {
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

// watchersOf are the mod_watch chunks of a listener.
func watchersOf(chunks []*Low, l listener) []*Low {
	var list []*Low
	for _, chunk := range chunks {
		if !chunk.is(l.state, l.id) {
			continue
		}
		low := chunk.copy()
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

// callBeacons runs mod_beacon of the states that have a beacon (State.call_beacons).
func (r *Run) callBeacons(ctx context.Context, chunks []*Low, running *results) error {
	var beacons []*Low
	for _, chunk := range chunks {
		if !chunk.Has("beacon") {
			continue
		}
		low := chunk.copy()
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
