package heat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/modules"
)

// markDeployed writes the file, in heat-config's format, that prevents a deployment from starting twice.
func (p Paths) markDeployed(d *Deployment) error {
	b, err := json.MarshalIndent(d.Raw, "", "  ")
	if err != nil {
		return err
	}
	return writePrivate(p.deployedPath(d.ID), b)
}

// recover finishes the deployments that were running when this program or the host stopped. Those with the option
// resume run again; the others are reported as failed.
func (e *Engine) recover(ctx context.Context) {
	for _, id := range e.o.records() {
		r, ok := e.o.readRecord(id)
		if !ok || r.State == stateDone {
			continue
		}
		b, err := readLimited(e.o.deployedPath(id), maxFile)
		var d *Deployment
		if err == nil {
			d, err = NewDeployment(any(parseJSON(b)))
		}
		if err != nil || d.ID != id {
			e.log.Error("An interrupted deployment cannot be read", "deployment", id, "err", err)
			r.State = stateDone
			if err := e.o.writeRecord(id, r); err != nil {
				e.log.Error("Cannot note a deployment", "deployment", id, "err", err)
			}
			continue
		}
		if d.resumes() && r.Resumes <= maxResumes {
			e.log.Warn("A deployment goes on", "deployment", id, "name", d.Name)
			e.mu.Lock()
			e.known[id] = true
			e.queue = append(e.queue, d)
			e.mu.Unlock()
			continue
		}
		cause := "the agent ended"
		if boot := e.o.bootID(); boot != "" && boot != r.Boot {
			cause = "the host was restarted"
		}
		e.log.Error("A deployment was interrupted", "deployment", id, "name", d.Name, "cause", cause)
		e.finish(d, failed("interrupted: %s while the deployment was running (begun %s)", cause, r.Started.UTC().Format(time.RFC3339)), r)
	}
	e.begin(ctx)
	e.spool.flush(ctx, true)
}

// resumes reports whether the deployment may continue after a reboot.
func (d *Deployment) resumes() bool { return pytext.Truth(d.Options["resume"]) }

// begin starts queued deployments in order, up to the limit.
func (e *Engine) begin(ctx context.Context) {
	select {
	case <-e.o.Drain:
		return
	default:
	}
	for ctx.Err() == nil {
		e.mu.Lock()
		if len(e.queue) == 0 || len(e.running) >= max(1, e.o.Parallel) || e.reboot {
			e.mu.Unlock()
			return
		}
		d := e.queue[0]
		e.queue = e.queue[1:]
		run, cancel := context.WithCancelCause(ctx)
		e.running[d.ID] = cancel
		e.mu.Unlock()
		e.wg.Go(func() {
			defer cancel(nil)
			e.deploy(run, d)
			e.mu.Lock()
			delete(e.running, d.ID)
			delete(e.known, d.ID)
			delete(e.origin, d.ID)
			e.mu.Unlock()
			e.poke()
		})
	}
}

// deploy runs a deployment and stores its signal. If the program ends meanwhile, the deployment counts as interrupted
// at the next start.
func (e *Engine) deploy(ctx context.Context, d *Deployment) {
	r, again := e.o.readRecord(d.ID)
	if again {
		r.Resumes++
	} else {
		r = record{Started: time.Now()}
	}
	r.State, r.Boot = stateRunning, e.o.bootID()
	// Write the record first: with a record but no deployed file, a deployment counts as not started.
	if err := errors.Join(e.o.writeRecord(d.ID, r), e.o.markDeployed(d)); err != nil {
		e.log.Error("A deployment is not begun, because that cannot be noted", "deployment", d.ID, "err", err)
		return
	}
	e.log.Info("Running a deployment", "deployment", d.ID, "name", d.Name, "group", d.Group)
	result := e.call(ctx, d, r.Resumes)
	switch {
	case errors.Is(context.Cause(ctx), errWithdrawn):
		result[keyStderr] = joinText(fmt.Sprint(result[keyStderr]), errWithdrawn.Error())
	case ctx.Err() != nil:
		return // the program ends
	case d.resumes() && result.Status() == ExitResume:
		e.askReboot(ctx, d, r, result)
		return
	}
	e.finish(d, joined(r, result), r)
}

// joined returns a result preceded by the deployment's output before its reboots.
func joined(r record, result Result) Result {
	for key, before := range map[string]string{keyStdout: r.Out, keyStderr: r.Error} {
		if before != "" {
			after, _ := result[key].(string)
			result[key] = joinText(before, after)
		}
	}
	return result
}

// call runs the deployment's group through the module heat.
func (e *Engine) call(ctx context.Context, d *Deployment, resumes int) Result {
	limit := e.o.Timeout
	if v, ok := d.Options["timeout"]; ok {
		if n, err := modules.ToInt(v); err == nil && n > 0 {
			limit = time.Duration(n) * time.Second
		}
	}
	inputs, _ := d.Raw["inputs"].([]any)
	if d.resumes() {
		inputs = append(append([]any{}, inputs...), map[string]any{"name": "heat_resume_count", "type": "String", "value": fmt.Sprint(resumes)})
	}
	v, err := e.o.Call(ctx, "heat.hook", map[string]any{"group": d.Group, "config": d.Config, "inputs": inputs, "outputs": outputsOf(d),
		"options": d.Options, "name": d.Name, "id": d.ID, "creation_time": d.CreationTime, "timeout": limit.Seconds()})
	if err != nil {
		return failed("cannot run the deployment: %v", err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return failed("cannot run the deployment: %s", pytext.Str(v))
	}
	return m
}

func outputsOf(d *Deployment) []any {
	list := make([]any, len(d.Outputs))
	for i, name := range d.Outputs {
		list[i] = map[string]any{"name": name}
	}
	return list
}

// finish stores the result. It stores the signal first, so that every finished deployment is signalled.
func (e *Engine) finish(d *Deployment, result Result, r record) {
	if d.Transport() != "" {
		if err := e.spool.put(d, result); err != nil {
			e.log.Error("A signal is lost", "deployment", d.ID, "err", err)
		}
	}
	text, err := json.MarshalIndent(trim(result, MaxSignal), "", "  ")
	if err == nil {
		err = writePrivate(e.o.notifyPath(d.ID), text)
	}
	r.State, r.Out, r.Error = stateDone, "", ""
	if err := errors.Join(err, e.o.writeRecord(d.ID, r)); err != nil {
		e.log.Error("Cannot note the end of a deployment", "deployment", d.ID, "err", err)
	}
	e.log.Info("A deployment ended", "deployment", d.ID, "name", d.Name, "status", result.Status())
}

// askReboot records that the deployment continues after the reboot, and reboots. Nothing else starts before that.
func (e *Engine) askReboot(ctx context.Context, d *Deployment, r record, result Result) {
	if r.Resumes >= maxResumes {
		result[keyStderr] = joinText(fmt.Sprint(result[keyStderr]), fmt.Sprintf("the deployment asked for more than %d reboots", maxResumes))
		e.finish(d, joined(r, result), r)
		return
	}
	all := joined(r, result)
	half := MaxSignal / 4
	r.State = stateResume
	r.Out, r.Error = shorten(pytext.Str(all[keyStdout]), half), shorten(pytext.Str(all[keyStderr]), half)
	if err := e.o.writeRecord(d.ID, r); err != nil {
		e.finish(d, failed("cannot note that the deployment goes on after a reboot: %v", err), r)
		return
	}
	e.mu.Lock()
	e.reboot = true
	e.mu.Unlock()
	e.log.Warn("A deployment asks for a reboot", "deployment", d.ID, "name", d.Name)
	if err := e.o.Command(ctx, e.o.Reboot, nil); err != nil {
		e.mu.Lock()
		e.reboot = false
		e.mu.Unlock()
		result[keyStderr] = joinText(fmt.Sprint(result[keyStderr]), "cannot reboot: "+err.Error())
		e.finish(d, joined(r, result), r)
	}
}
