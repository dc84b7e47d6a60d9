package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"quartermaster.io/bench/kit"
)

// process is an operator under measurement, the simulator, or `perf`.
type process struct{ *kit.Process }

func spawn(core int, program string, arguments ...string) (*process, error) {
	started, err := kit.Spawn(core, program, arguments...)
	return &process{started}, err
}

func (p *process) end() { p.Stop(syscall.SIGTERM) }

// quiet waits until the program has used less than 1 % of a core for two seconds in a row, and `least` has passed.
func (p *process) quiet(ctx context.Context, least time.Duration) error {
	if err := kit.Pause(ctx, least); err != nil {
		return err
	}
	last, err := p.CPU()
	for calm, end := 0, time.Now().Add(2*time.Minute); calm < 2 && err == nil; {
		if err = kit.Pause(ctx, time.Second); err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s does not come to rest in two minutes", p)
		}
		var now time.Duration
		now, err = p.CPU()
		if calm++; now-last > 10*time.Millisecond {
			calm = 0
		}
		last = now
	}
	return err
}
