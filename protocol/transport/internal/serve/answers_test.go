package serve

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestAnswersRoom: beyond manyAnswers the poller waits until one of them ends, or for answersPause.
func TestAnswersRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a answers
		waits := func(what string, want time.Duration) {
			t.Helper()
			begun := time.Now()
			a.awaitRoom()
			if took := time.Since(begun); took != want {
				t.Errorf("%s: waited for %v, want %v", what, took, want)
			}
		}
		for range manyAnswers {
			waits("few answers", 0)
			a.begin()
		}
		a.begin()
		time.AfterFunc(answersPause/4, a.end) // leaves manyAnswers
		time.AfterFunc(answersPause/2, a.end)
		waits("one answer more than there is room for", answersPause/2)
		a.begin()
		busy := time.AfterFunc(answersPause/4, func() {
			for range fewAnswers {
				a.begin()
				a.end()
			}
		})
		waits("answers end and others begin", answersPause)
		busy.Reset(answersPause / 4)
		waits("again", answersPause)
	})
}

// TestAnswersThatWait: answers that do not end hold the poller back once, not again for each request.
func TestAnswersThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a answers
		for range manyAnswers + 8 {
			a.begin()
		}
		begun := time.Now()
		for range 50 {
			a.begin()
			a.awaitRoom()
			a.end()
		}
		if took := time.Since(begun); took != answersPause {
			t.Errorf("50 requests beside %d that wait took %v, want %v", manyAnswers+8, took, answersPause)
		}
		for range manyAnswers + 8 {
			a.end()
		}
		if a.running != 0 || a.waiting != 0 {
			t.Errorf("%d run and %d wait after all have ended", a.running, a.waiting)
		}
	})
}
