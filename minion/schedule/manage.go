package schedule

import (
	"fmt"
	"strings"
	"time"

	"github.com/brine-salt/brine/internal/nested"
	"github.com/brine-salt/brine/internal/python/pytext"
	"github.com/brine-salt/brine/internal/python/strftime"
)

// Manage executes the request of an event with the tag manage_schedule (salt/minion.py: manage_schedule). It returns
// a copy of the data of the event that answers it, or nil without an answer.
func (s *Schedule) Manage(data map[string]any) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := textOf(data["name"])
	persist := pytext.Truth(data["persist"])
	var answer map[string]any
	switch fun := textOf(data["func"]); fun {
	case "delete":
		// Requests change only opts; jobs of the pillar are read-only.
		answer = s.removeJob(name, persist)
	case "add":
		answer = s.addJob(data["schedule"], persist)
	case "modify":
		s.modifyJob(name, data["schedule"], persist)
	case "enable", "disable":
		// The switch is part of the configuration.
		s.opts["enabled"] = fun == "enable"
		answer = s.answerAll("minion_schedule_" + fun + "d_complete")
		s.persistJobs(persist)
	case "enable_job", "disable_job":
		s.switchJob(name, fun == "enable_job")
		answer = s.answerAll("minion_schedule_" + strings.TrimSuffix(fun, "_job") + "d_job_complete")
		s.persistJobs(persist)
	case "run_job":
		s.runNow(name)
	case "postpone_job":
		s.postpone(name, data, true)
		answer = s.answerAll("minion_schedule_postpone_job_complete")
	case "skip_job":
		s.postpone(name, data, false)
		answer = s.answerAll("minion_schedule_skip_job_complete")
	case "reload":
		s.reloadJobs(data["schedule"])
	case "list":
		answer = s.listJobs(data["where"])
	case "save_schedule":
		s.persistJobs(true)
		answer = s.fire(prefix+"minion_schedule_saved", map[string]any{"complete": true})
	case "get_next_fire_time":
		answer = s.nextFireTime(name)
	case "job_status":
		// Salt answers only if the caller waits for the event.
		if pytext.Truth(data["fire_event"]) {
			job, ok := nested.Copy(s.merged()[name]).(map[string]any)
			if !ok {
				job = map[string]any{}
			}
			answer = s.fire(prefix+"minion_schedule_job_status_complete", map[string]any{"complete": true, "data": job})
		}
	default:
		s.o.Log.Error(fmt.Sprintf("Function %q is unavailable in salt.utils.scheduler", fun))
	}
	// Any request may change the next time.
	s.planTimer(s.now())
	return answer
}

// prefix is the start of the tags of answers.
const prefix = "/salt/minion/"

// answerAll answers with the whole schedule.
func (s *Schedule) answerAll(tag string) map[string]any {
	return s.fire(prefix+tag, map[string]any{"complete": true, "schedule": nested.Copy(s.merged())})
}

// inPillar reports whether the job is in the pillar, and logs that it cannot be changed.
func (s *Schedule) inPillar(name, what string) bool {
	s.readPillar()
	_, ok := s.pillar[name]
	if ok {
		s.o.Log.Warn("Cannot " + what + " job " + name + ", it's in the pillar!")
	}
	return ok
}

// removeJob removes a job from the configuration.
func (s *Schedule) removeJob(name string, persist bool) map[string]any {
	if _, ok := s.opts[name]; ok {
		delete(s.opts, name)
	} else {
		s.inPillar(name, "delete")
	}
	// The event is sent before the file is written, so that the change is reported even if writing fails.
	answer := s.answerAll("minion_schedule_delete_complete")
	s.persistJobs(persist)
	return answer
}

// addJob adds one job.
func (s *Schedule) addJob(jobs any, persist bool) map[string]any {
	m, ok := jobs.(map[string]any)
	if !ok {
		s.o.Log.Error("Scheduled jobs have to be of type dict.")
		return nil
	}
	if len(m) != 1 {
		s.o.Log.Error("You can only schedule one new job at a time.")
		return nil
	}
	for name, v := range m {
		job, ok := nested.Copy(v).(map[string]any)
		if !ok {
			s.o.Log.Error("Scheduled jobs have to be of type dict.")
			return nil
		}
		// An added job is enabled by default.
		if _, ok := job["enabled"]; !ok {
			job["enabled"] = true
		}
		if !s.inPillar(name, "update") {
			s.o.Log.Info("Added new job " + name + " to scheduler")
			s.opts[name] = job
		}
	}
	answer := s.answerAll("minion_schedule_add_complete")
	s.persistJobs(persist)
	return answer
}

// modifyJob replaces a job.
func (s *Schedule) modifyJob(name string, job any, persist bool) {
	if _, ok := s.opts[name]; ok {
		s.removeJob(name, persist)
	} else if s.inPillar(name, "modify") {
		return
	}
	s.opts[name] = nested.Copy(job)
	s.persistJobs(persist)
}

// switchJob enables or disables one job.
func (s *Schedule) switchJob(name string, on bool) {
	if job, ok := s.opts[name].(map[string]any); ok {
		job["enabled"] = on
		return
	}
	s.inPillar(name, "modify")
}

// runNow starts a job regardless of its plan.
func (s *Schedule) runNow(name string) {
	job, ok := s.merged()[name].(map[string]any)
	if !ok {
		s.o.Log.Info("Invalid function: None in scheduled job " + name + ".")
		return
	}
	// Set the fields that an evaluation sets.
	if _, ok := job["name"]; !ok {
		job["name"] = name
	}
	if _, ok := job["run"]; !ok {
		job["run"] = true
	}
	if _, ok := job["maxrunning"]; !ok {
		job["maxrunning"] = int64(1)
	}
	s.checkRunning(job, pytext.Str(job["name"]), s.now())
	if !pytext.Truth(job["run"]) || pytext.Truth(job["dry_run"]) {
		return
	}
	fun, err := jobFunction(job)
	if err != nil {
		s.o.Log.Error(fmt.Sprintf("Exception %s occurred in scheduled job", err), "job", name)
		return
	}
	copied, _ := nested.Copy(job).(map[string]any)
	s.o.Start(Run{Name: pytext.Str(job["name"]), Fun: fun, Job: copied})
}

// postpone postpones a job, or only skips it once.
func (s *Schedule) postpone(name string, data map[string]any, later bool) {
	job, ok := s.opts[name].(map[string]any)
	if !ok {
		s.inPillar(name, "modify")
		return
	}
	format, ok := data["time_fmt"]
	if !ok {
		format = timeLayout
	}
	// The job is skipped at time; with later it also runs at new_time.
	job["skip_explicit"] = append(listOf(job["skip_explicit"]), map[string]any{"time": data["time"], "time_fmt": format})
	if later {
		job["run_explicit"] = append(listOf(job["run_explicit"]), map[string]any{"time": data["new_time"], "time_fmt": format})
	}
}

// reloadJobs merges a schedule into the configuration.
func (s *Schedule) reloadJobs(jobs any) {
	m, ok := nested.Copy(jobs).(map[string]any)
	// The data may be a whole configuration or only its schedule.
	if inner, nested := m["schedule"].(map[string]any); ok && nested {
		m = inner
	}
	for k, v := range m {
		s.opts[k] = v
	}
}

// listJobs answers with the jobs of the pillar, of the configuration, or of both.
func (s *Schedule) listJobs(where any) map[string]any {
	var jobs any
	switch where {
	case "pillar":
		s.readPillar()
		jobs = nested.Copy(s.pillar)
	case "opts":
		jobs = nested.Copy(s.opts)
	default:
		jobs = nested.Copy(s.merged())
	}
	if m, ok := jobs.(map[string]any); !ok || m == nil {
		jobs = map[string]any{}
	}
	return s.fire(prefix+"minion_schedule_list_complete", map[string]any{"complete": true, "schedule": jobs})
}

// nextFireTime answers with the planned time of a job, or nil.
func (s *Schedule) nextFireTime(name string) map[string]any {
	var next any
	if job, ok := s.merged()[name].(map[string]any); ok {
		if t, ok := job["_next_fire_time"].(time.Time); ok {
			next = strftime.Naive(timeLayout, t)
		}
	}
	return s.fire(prefix+"minion_schedule_next_fire_time_complete", map[string]any{"complete": true, "next_fire_time": next})
}

// persistJobs writes the configured jobs without their private fields.
func (s *Schedule) persistJobs(wanted bool) {
	if !wanted || s.o.Persist == nil {
		return
	}
	jobs, _ := nested.Copy(s.opts).(map[string]any)
	for _, v := range jobs {
		if job, ok := v.(map[string]any); ok {
			// Private fields are valid in this process only.
			for k := range job {
				if strings.HasPrefix(k, "_") {
					delete(job, k)
				}
			}
		}
	}
	if err := s.o.Persist(jobs); err != nil {
		s.o.Log.Error("Failed to persist the updated schedule", "err", err)
	}
}
