package states

import (
	"context"
	"fmt"

	"github.com/brine-salt/brine/modules/pyobj"
)

// A listener is a chunk that listens to others. A chunk with listen is identified by its state and id, one in a
// listen_in by the text there, which may also be a name.
type listener struct {
	state, id string
	to        []any
}

// findNamed returns the chunks that a state and an id, a name or the state's name stand for, in their order.
func (r *Run) findNamed(chunks []*Low, state, id string) []*Low {
	p := pattern{key: state, val: id}
	found := r.findTargets(&p, chunks)
	if state == id || state == "id" || state == "sls" { // patterns interpret these differently
		found = nil
		for _, c := range chunks {
			if c.state == state && (state == id || p.matchesName(c.id) || p.matchesName(c.name)) {
				found = append(found, c)
			}
		}
	}
	return found
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
				found := r.findTargets(&pattern{key: "id", val: pyobj.Str(to)}, chunks)
				if found == nil {
					continue
				}
				d = pyobj.NewDict(found[0].state, found[0].id)
			}
			for k, v := range d.All() {
				state, id := pyobj.Str(k), pyobj.Str(v)
				sources := r.findNamed(chunks, state, id)
				if sources == nil {
					lost(state, id)
					continue
				}
				for _, source := range sources {
					if rec := running.get(source.Tag()); rec == nil || !hasChanges(rec) {
						continue
					}
					listening := r.findNamed(chunks, l.state, l.id)
					if listening == nil {
						lost(l.state, l.id)
						continue
					}
					watchers = append(watchers, watchersOf(listening)...)
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

// watchersOf returns the mod_watch chunks of states that listen. Their requisites are removed, since those were met
// when the state itself ran.
func watchersOf(listening []*Low) []*Low {
	var list []*Low
	for _, chunk := range listening {
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
