//go:build unix

package file_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/brine-salt/brine/modules"
	"github.com/brine-salt/brine/modules/cpmod"
	filemod "github.com/brine-salt/brine/modules/file"
	"github.com/brine-salt/brine/modules/pyobj"
	"github.com/brine-salt/brine/states"
	"github.com/brine-salt/brine/states/file"
)

// processor is the time of the processor that this process has taken.
func processor(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkManagedUnchanged is a run of 2,000 files that are as they should be: the time of one is what a state costs, on the
// clock and of the processor.
func BenchmarkManagedUnchanged(b *testing.B) {
	const files = 2000
	h := newHost(b)
	high := &pyobj.Dict{}
	for i := range files {
		name := fmt.Sprintf("f%d", i)
		h.write(name, "one\ntwo\n")
		args := pyobj.NewList("managed", pyobj.NewDict("name", h.path(name)), pyobj.NewDict("mode", "0644"), pyobj.NewDict("order", int64(10000+i)))
		args.Items = append(args.Items, pyobj.NewDict("user", "root"), pyobj.NewDict("group", "root"))
		if i%2 == 0 {
			args.Items = append(args.Items, pyobj.NewDict("contents", "one\ntwo\n"))
		} else {
			args.Items = append(args.Items, pyobj.NewDict("source", "salt://plain"))
		}
		_ = high.Set(name, pyobj.NewDict("file", args, "__sls__", "sls", "__env__", "base"))
	}
	door := &modules.Module{Name: "door", Funcs: []modules.Def{{Name: "open", Run: func(ctx context.Context, c *modules.Call) (any, error) {
		return states.New(c, states.Options{Registry: states.NewRegistry(file.Module)}).CallHigh(ctx, pyobj.DeepCopy(high).(*pyobj.Dict), nil)
	}}}}
	reg := modules.NewRegistry(door, filemod.Module, cpmod.Module)
	before := processor(b)
	for b.Loop() {
		res := reg.Run(b.Context(), h.env, modules.Request{Fun: "door.open", JID: "20250102030405678901"})
		all, _ := res.Return.(map[string]any)
		if len(all) != files {
			b.Fatalf("%v", res.Return)
		}
		for tag, v := range all {
			if rec := v.(map[string]any); rec["result"] != true || len(rec["changes"].(map[string]any)) > 0 {
				b.Fatalf("%s: %v", tag, rec)
			}
		}
	}
	b.ReportMetric(float64((processor(b)-before).Microseconds())/float64(b.N*files), "cpu-µs/state")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*files), "µs/state")
}
