package maprate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/parley-broker/parley/internal/flow/mapping"
	"github.com/parley-broker/parley/internal/measure/bench"
)

// PeerRate is how fast a peer maps.
type PeerRate struct {
	System    string  `json:"system"`
	Short     string  `json:"short"`
	PerSecond float64 `json:"per_second"` // documents
	WorkerTo  float64 `json:"worker_to_it"`
}

// peers are engines of others that are warm.
type peers struct {
	config  Config
	engines []engine
	missing map[string]string
}

type engine struct {
	bench.MapEngine

	peer           bench.MapPeer
	rates, toWorks []float64
}

// startPeers starts what is there, and requires that each makes of the document what the worker makes of it.
func (b *rate) startPeers(ctx context.Context) (*peers, error) {
	p := &peers{config: b.Config, missing: map[string]string{}}
	for _, peer := range b.Peers {
		if missing := peer.Missing(); missing != "" {
			p.missing[peer.Name] = missing
			continue
		}
		b.Progress("starting " + peer.Name)
		folder := filepath.Join(b.work, peer.Name)
		if err := os.Mkdir(folder, 0o700); err != nil {
			return p, fmt.Errorf("make a folder for %s: %w", peer.Name, err)
		}
		started, err := peer.Start(ctx, bench.MapPlace{
			Stylesheet: filepath.Join(b.work, "m.xsl"), Document: filepath.Join(b.work, "0.xml"), Folder: folder,
		})
		if err != nil {
			return p, fmt.Errorf("start %s: %w", peer.Name, err)
		}
		p.engines = append(p.engines, engine{MapEngine: started, peer: peer})
		if err := b.requireSame(ctx, peer.Name, started.Result); err != nil {
			return p, err
		}
	}
	return p, nil
}

// requireSame compares the result of a peer with that of the worker.
func (b *rate) requireSame(ctx context.Context, name string, result []byte) error {
	ours, err := b.maps.Run(ctx, "M", []mapping.Input{b.input(b.small)})
	if err != nil {
		return err
	}
	made, err := ours.Body.Bytes()
	if err = errors.Join(err, ours.Body.Close()); err != nil {
		return fmt.Errorf("read the result of the worker: %w", err)
	}
	differences, err := mapping.Compare(result, made, "application/xml")
	if err != nil {
		return fmt.Errorf("compare the result of %s: %w", name, err)
	}
	if len(differences) > 0 {
		return fmt.Errorf("%s makes something else of the document: %s", name, differences[0])
	}
	return nil
}

// run measures each once, beside the rate of the worker in the same round.
func (p *peers) run(ctx context.Context, worker float64) error {
	for i := range p.engines {
		e := &p.engines[i]
		p.config.Progress(fmt.Sprintf("%s, %d documents", e.peer.Name, p.config.Documents))
		took, err := e.Run(ctx, p.config.Documents)
		if err != nil {
			return fmt.Errorf("measure %s: %w", e.peer.Name, err)
		}
		perSecond := float64(p.config.Documents) / took.Seconds()
		e.rates, e.toWorks = append(e.rates, perSecond), append(e.toWorks, worker/perSecond)
	}
	return nil
}

func (p *peers) rates() []PeerRate {
	rates := []PeerRate{}
	for _, e := range p.engines {
		rates = append(rates, PeerRate{e.peer.Name, e.peer.Short, median(e.rates), median(e.toWorks)})
	}
	return rates
}

func (p *peers) stop(ctx context.Context) error {
	var errs []error
	for _, e := range p.engines {
		errs = append(errs, e.Stop(ctx))
	}
	return errors.Join(errs...)
}
