/* A script that runs into its limits again and again: its controller's circuit, and who hears of
 * it. */
#include "operator/controller_internal.h"
#include "operator/object_warning.h"

static int64_t now_of(const struct ml_controller *self)
{
    return ml_clock_monotonic(self->cluster->clock);
}

static void tell(struct ml_controller *self, bool open, const char *note)
{
    ml_metric_set(self->metrics.circuit_open, open);
    if (self->handler->circuit)
        self->handler->circuit(self->context, self, open, note);
}

static void tell_opened(struct ml_controller *self, struct ml_object *object,
                        const struct ml_err *err)
{
    ML_AUTO_FREE char *note = ml_asprintf(
        "%d times in a row a limit ended the script of controller %s; one object at a "
        "time tries it, with pauses, until it works or is changed: %s",
        ML_CIRCUIT_HITS_MAX, self->name, err->message);
    ml_error(self->cluster->log, self->name,
             "script runs into its limits again and again; its circuit is open", ML_ERR(err),
             ML_F("pause_seconds", (double)self->circuit.pause_ns / (double)ML_NS_PER_S));
    if (object)
        ml_object_warning(self->cluster, ml_revision_kind(self->current), object, "CircuitOpen",
                          note);
    tell(self, true, note);
}

static void tell_closed(struct ml_controller *self)
{
    ML_AUTO_FREE char *note = ml_asprintf("controller %s works within its limits again",
                                          self->name);
    ml_info(self->cluster->log, self->name,
            "script works within its limits again; its circuit is closed");
    tell(self, false, note);
}

void controller_circuit_init(struct ml_controller *self)
{
    ml_timer_init(&self->probe, self->cluster->loop, controller_pump, self);
}

void controller_circuit_fini(struct ml_controller *self)
{
    ml_timer_stop(&self->probe);
}

/* No timer while a probe is under way: its end decides. */
static void wait_for_probe(struct ml_controller *self)
{
    int64_t wait_ns = ml_circuit_wait(&self->circuit, now_of(self));
    if (wait_ns > 0 && wait_ns < INT64_MAX)
        ml_timer_start(&self->probe, wait_ns);
}

void controller_limit_hit(struct ml_controller *self, struct ml_object *object,
                          const struct ml_err *err)
{
    if (ml_circuit_hit(&self->circuit, now_of(self)))
        tell_opened(self, object, err);
    wait_for_probe(self);
}

void controller_circuit_hurry(struct ml_controller *self)
{
    if (self->circuit.state != ML_CIRCUIT_OPEN)
        return;
    ml_circuit_hurry(&self->circuit);
    wait_for_probe(self);
}

void controller_circuit_close(struct ml_controller *self)
{
    ml_timer_stop(&self->probe);
    if (ml_circuit_success(&self->circuit))
        tell_closed(self);
}

bool controller_circuit_lets_begin(const struct ml_controller *self)
{
    return self->circuit.state == ML_CIRCUIT_CLOSED ||
           ml_circuit_wait(&self->circuit, now_of(self)) == 0;
}
