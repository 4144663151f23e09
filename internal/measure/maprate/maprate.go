// Package maprate measures how fast the worker for stylesheets is, beside xsltproc in the same run.
package maprate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-broker/parley/internal/flow/mapping"
	"github.com/parley-broker/parley/internal/measure/bench"
)

// The names of the figures that have rounds.
const (
	WorkerRate = "worker"
	OnceRate   = "xsltproc given all"
	EachRate   = "an xsltproc for each"
	ToOnce     = "worker to xsltproc given all"
	ToEach     = "worker to an xsltproc for each"
)

// Config says what is measured.
type Config struct {
	Documents int // of a round of the worker and of xsltproc given all at once
	Processes int // of a round of xsltproc given one
	Repeat    int // rounds of each, in turns, of which the median counts
	LargeMB   int // size of the large document, 0: none
	// Worker is the worker for stylesheets; empty: the one that nodes of this machine run. A node without one runs xsltproc, which is what
	// the worker is compared with, and no worker.
	Worker string
	// Alone is how long small documents are mapped without a large one beside them, before it and after it; 0: eight seconds.
	Alone    time.Duration
	Peers    []bench.MapPeer
	Progress func(text string)
}

// Report has documents a second, each the median of its rounds.
type Report struct {
	Bytes          int     `json:"bytes"` // of a document
	Worker         float64 `json:"worker_per_second"`
	Once           float64 `json:"xsltproc_once_per_second"`
	Each           float64 `json:"xsltproc_each_per_second"`
	ToOnce         float64 `json:"worker_to_xsltproc_once"` // median of the ratios of the rounds
	ToEach         float64 `json:"worker_to_xsltproc_each"`
	BesideLarge    float64 `json:"beside_large_per_second"` // small documents while a large one is mapped
	BesideLargeTo  float64 `json:"beside_large_to_alone"`
	LargeSeconds   float64 `json:"large_seconds"`
	LargeMegabytes int     `json:"large_megabytes"`
	// Peers are those that were there, Missing those that were not, with what gets them.
	Peers   []PeerRate        `json:"peers"`
	Missing map[string]string `json:"missing"`
	// Rounds are the values of each round, under the names of figures.
	Rounds map[string][]float64 `json:"rounds"`
}

// sheet makes a result of each line of an order, with a sum: what an ordinary map does.
const sheet = `<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform" xmlns:o="urn:shop"
  exclude-result-prefixes="o">
<xsl:output omit-xml-declaration="yes"/>
<xsl:template match="/o:Order"><SalesOrder number="{o:Number}"><xsl:apply-templates select="o:Lines/o:Line"/>
<Lines><xsl:value-of select="count(o:Lines/o:Line)"/></Lines>
<Total><xsl:value-of select="sum(o:Lines/o:Line/o:Price)"/></Total></SalesOrder>
</xsl:template>
<xsl:template match="o:Line"><Item><Sku><xsl:value-of select="o:Sku"/></Sku><Quantity><xsl:value-of select="o:Quantity"/></Quantity>
<xsl:if test="o:Price &gt; 100"><Dear/></xsl:if></Item></xsl:template>
</xsl:stylesheet>`

// order makes an order of at least so many bytes.
func order(size int) []byte {
	var b bytes.Buffer
	b.WriteString(`<Order xmlns="urn:shop"><Number>4711</Number><Lines>`)
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "<Line><Sku>S-%04d</Sku><Quantity>%d</Quantity><Price>%d.50</Price></Line>", i%10_000, i%9+1, i*37%200)
	}
	b.WriteString("</Lines></Order>")
	return b.Bytes()
}

const (
	smallBytes = 2048
	aloneTime  = 8 * time.Second // of Config.Alone, by default
)

// rate is a run.
type rate struct {
	Config

	pool  *mapping.Pool
	maps  *mapping.Maps
	small []byte
	work  string // a folder with the stylesheet and the documents
}

// Measure measures. It needs parley-xslt and xsltproc.
func Measure(ctx context.Context, config Config) (report Report, err error) {
	if config.Worker == "" {
		if config.Worker, err = mapping.FindWorker(); err != nil {
			return report, fmt.Errorf("find the worker that is measured: %w", err)
		}
	}
	xsltproc, err := exec.LookPath("xsltproc")
	if err != nil {
		return report, fmt.Errorf("find the peer that the worker is compared with: %w: install xsltproc (on Debian the package xsltproc)", err)
	}
	work, err := os.MkdirTemp("", "parley-maprate-")
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	b := &rate{Config: config, small: order(smallBytes), work: work}
	if err := b.prepare(); err != nil {
		return report, err
	}
	defer b.pool.Close()
	peers, err := b.startPeers(ctx)
	defer func() { err = errors.Join(err, peers.stop(context.WithoutCancel(ctx))) }()
	if err != nil {
		return report, err
	}
	var worker, once, each, toOnce, toEach []float64
	for range config.Repeat {
		config.Progress(fmt.Sprintf("the worker, %d documents", config.Documents))
		one, err := b.worker(ctx)
		if err != nil {
			return report, err
		}
		config.Progress(fmt.Sprintf("xsltproc given %d documents", config.Documents))
		all, err := b.xsltproc(ctx, xsltproc, config.Documents, 1)
		if err != nil {
			return report, err
		}
		config.Progress(fmt.Sprintf("xsltproc, %d times", config.Processes))
		single, err := b.xsltproc(ctx, xsltproc, 1, config.Processes)
		if err != nil {
			return report, err
		}
		if err := peers.run(ctx, one); err != nil {
			return report, err
		}
		worker, once, each = append(worker, one), append(once, all), append(each, single)
		toOnce, toEach = append(toOnce, one/all), append(toEach, one/single)
	}
	report = Report{
		Bytes: len(b.small), Worker: median(worker), Once: median(once), Each: median(each), ToOnce: median(toOnce), ToEach: median(toEach),
		Peers: peers.rates(), Missing: peers.missing,
		Rounds: map[string][]float64{WorkerRate: worker, OnceRate: once, EachRate: each, ToOnce: toOnce, ToEach: toEach},
	}
	if config.LargeMB > 0 {
		err = b.besideLarge(ctx, &report)
	}
	return report, err
}

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

// prepare writes the files of xsltproc, and the map.
func (b *rate) prepare() error {
	errs := []error{os.WriteFile(filepath.Join(b.work, "m.xsl"), []byte(sheet), 0o600)}
	for i := range b.Documents {
		errs = append(errs, os.WriteFile(filepath.Join(b.work, fmt.Sprintf("%d.xml", i)), b.small, 0o600))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("write the documents: %w", err)
	}
	var err error
	b.pool = mapping.NewPool(mapping.PoolConfig{XSLT: b.Worker, Workers: 1})
	b.maps, err = mapsOf(b.pool)
	return err
}

func mapsOf(pool *mapping.Pool) (*mapping.Maps, error) {
	written, err := json.Marshal(map[string]any{"M": mapping.Definition{
		Language: mapping.XSLT, Program: mapping.Program{File: "m.xsl", Documents: map[string]string{"m.xsl": sheet}}, TimeoutS: 60,
	}})
	if err != nil {
		return nil, err
	}
	return mapping.New(written, pool)
}

// input is a document in memory.
func (b *rate) input(body []byte) mapping.Input {
	return mapping.Input{
		Size: int64(len(body)), Charset: "utf-8",
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil },
	}
}

func (b *rate) one(ctx context.Context, body []byte) error {
	out, err := b.maps.Run(ctx, "M", []mapping.Input{b.input(body)})
	if err != nil {
		return err
	}
	return out.Body.Close()
}

// worker has one worker map documents of two callers, so that it need not wait for one of them.
func (b *rate) worker(ctx context.Context) (float64, error) {
	if err := b.one(ctx, b.small); err != nil { // it is started, and has compiled the map
		return 0, err
	}
	var left atomic.Int64
	left.Store(int64(b.Documents))
	errs := make([]error, 2)
	var callers sync.WaitGroup
	began := time.Now()
	for i := range errs {
		callers.Go(func() {
			for left.Add(-1) >= 0 && errs[i] == nil {
				errs[i] = b.one(ctx, b.small)
			}
		})
	}
	callers.Wait()
	return float64(b.Documents) / time.Since(began).Seconds(), errors.Join(errs...)
}

// xsltproc has processes of xsltproc map so many documents each.
func (b *rate) xsltproc(ctx context.Context, program string, documents, processes int) (float64, error) {
	arguments := []string{"m.xsl"}
	for i := range documents {
		arguments = append(arguments, fmt.Sprintf("%d.xml", i))
	}
	began := time.Now()
	for range processes {
		command := exec.CommandContext(ctx, program, arguments...)
		command.Dir, command.Stdout = b.work, io.Discard
		var said strings.Builder
		command.Stderr = &said
		if err := command.Run(); err != nil {
			return 0, fmt.Errorf("run xsltproc: %w: %s", err, said.String())
		}
	}
	return float64(documents*processes) / time.Since(began).Seconds(), nil
}

// besideLarge measures small documents alone, and while a large one is mapped: as many as there are processors at a time.
func (b *rate) besideLarge(ctx context.Context, report *Report) error {
	pool := mapping.NewPool(mapping.PoolConfig{XSLT: b.Worker})
	defer pool.Close()
	var err error
	if b.maps, err = mapsOf(pool); err != nil {
		return err
	}
	aloneTime := cmp.Or(b.Alone, aloneTime)
	large := order(b.LargeMB << 20)
	b.Progress("small documents alone")
	alone, err := b.during(ctx, func() error { return wait(ctx, aloneTime) })
	if err != nil {
		return err
	}
	b.Progress(fmt.Sprintf("small documents beside one of %d MB", b.LargeMB))
	began := time.Now()
	beside, err := b.during(ctx, func() error { return b.one(ctx, large) })
	if err != nil {
		return err
	}
	report.LargeSeconds, report.LargeMegabytes = time.Since(began).Seconds(), b.LargeMB
	b.Progress("small documents alone again")
	after, err := b.during(ctx, func() error { return wait(ctx, aloneTime) })
	report.BesideLarge, report.BesideLargeTo = beside, beside/((alone+after)/2)
	return err
}

// wait waits, or until ctx ends.
func wait(ctx context.Context, long time.Duration) error {
	select {
	case <-time.After(long):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// during gives how many small documents are mapped a second while something is done.
func (b *rate) during(ctx context.Context, work func() error) (float64, error) {
	var mapped atomic.Int64
	over := make(chan struct{})
	var callers sync.WaitGroup
	errs := make([]error, runtime.GOMAXPROCS(0))
	began := time.Now()
	for i := range errs {
		callers.Go(func() {
			for errs[i] == nil {
				select {
				case <-over:
					return
				default:
					if errs[i] = b.one(ctx, b.small); errs[i] == nil {
						mapped.Add(1)
					}
				}
			}
		})
	}
	err := work()
	rate := float64(mapped.Load()) / time.Since(began).Seconds()
	close(over)
	callers.Wait()
	return rate, errors.Join(errors.Join(errs...), err)
}
