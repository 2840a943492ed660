//go:build interop

package saltinfo_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/brine-salt/brine/internal/testkit/testsalt"
	"github.com/brine-salt/brine/master/restapi/internal/saltinfo"
	"github.com/brine-salt/brine/protocol/events"
)

// TestStockInfo feeds stock's SaltInfo and ours the same events: both send the same, and query the same minions for
// their grains.
func TestStockInfo(t *testing.T) {
	type object = map[string]any
	event := func(tag string, data object) object { return object{"tag": tag, "data": data} }
	job := func(jid, fun string, minions ...any) object {
		return event("salt/job/"+jid+"/new", object{"jid": jid, "_stamp": "now", "minions": minions, "fun": fun, "tgt": "*", "tgt_type": "glob", "arg": []any{}, "user": "root"})
	}
	ret := func(jid, fun, id string, v any, success bool) object {
		return event("salt/job/"+jid+"/ret/"+id, object{"jid": jid, "id": id, "fun": fun, "return": v, "retcode": 0, "success": success})
	}
	list := []object{
		event("salt", object{}), event("my/tag", object{"x": 1}), event("salt/presence/present", object{"present": []any{"a", "b"}}),
		event("salt/key", object{"act": "accept", "id": "a", "result": true}), event("salt/key", object{"act": "pend", "id": "c", "result": true}),
		job("20260101000000000001", "test.ping", "a", "b"), ret("20260101000000000001", "test.ping", "a", true, true), ret("20260101000000000001", "test.ping", "b", nil, false),
		ret("20260101000000000001", "test.ping", "b", true, true), job("20260101000000000002", "grains.items", "a", "b"),
		ret("20260101000000000002", "grains.items", "a", object{"os": "Debian"}, true), ret("20260101000000000002", "grains.items", "b", object{"os": "Arch"}, true),
		ret("20260101000000000003", "test.echo", "z", "unknown job", true), event("salt/presence/present", object{"present": []any{"a", "b"}}),
		event("salt/presence/present", object{"present": []any{"b", "d"}}), event("salt/key", object{"act": "delete", "id": "b", "result": true}),
		event("salt/presence/present", object{"present": []any{}}), event("salt/auth", object{"act": "accept", "id": "a"}),
	}
	var theirs []object
	testsalt.Ask(t, list, &theirs, "testdata/stock_info.py")
	ours := saltinfo.New()
	for i, e := range list {
		sent, asked := ours.Event(events.Event{Tag: e["tag"].(string), Data: maps.Clone(e["data"].(object))})
		slices.Sort(asked)
		text, err := json.Marshal([]any{sent, asked})
		if err != nil {
			t.Fatal(err)
		}
		var got []any
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		want := []any{byID(theirs[i]["sent"].([]any)), theirs[i]["asked"]}
		for k := range got {
			if got[k] == nil {
				got[k] = []any{}
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s number %d (-stock +ours)\n%s", e["tag"], i, d)
		}
	}
}

// byID sorts lists of minions: stock has them in the order in which they came.
func byID(sent []any) []any {
	for _, x := range sent {
		minions, _ := x.(map[string]any)["minions"].([]any)
		slices.SortFunc(minions, func(a, b any) int {
			return strings.Compare(a.(map[string]any)["id"].(string), b.(map[string]any)["id"].(string))
		})
	}
	return sent
}
