/* SPDX-License-Identifier: MIT
 *
 * Why: the thesis gained most on omnetpp, a discrete-event network simulator: events and packets are heap objects of
 * many sizes that live for a while, are wrapped in each other, sorted, cancelled and deleted by somebody else than made
 * them.  This is a simulator of that kind: hosts on a ring of routers with cross-links send requests to each other; a
 * request is wrapped in a frame for every link; routers queue frames and drop what does not fit; destinations answer;
 * senders keep a timer per request, repeat what was not answered in time and give up after some tries.
 *
 * Time is counted in whole nanoseconds and ties are broken by event number, so a run is the same everywhere; `checksum`
 * tells.  Checked at the end: every request was answered or given up, every frame sent over a link arrived at a router,
 * and every object made has been deleted.  An operation is one event.
 */
#include "args.h"
#include "clock.h"
#include "random.h"
#include "result.h"

#include <cstdint>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace
{
int64_t objects_alive;

struct Counted {
    Counted()
    {
        objects_alive++;
    }
    Counted(const Counted &) = delete;
    Counted &operator=(const Counted &) = delete;
    virtual ~Counted()
    {
        objects_alive--;
    }
};

struct Event;

struct Module {
    virtual ~Module() = default;
    virtual void handle(std::unique_ptr<Event> event) = 0;
};

struct Event : Counted {
    uint64_t time = 0, number = 0;
    Module *target = nullptr;
    bool is_cancelled = false;
};

struct Packet : Counted {
    std::string name;
    uint64_t request;
    unsigned from, to;
    bool is_answer;
    std::vector<uint32_t> payload;
};

// A packet on one link; which module it came through is noted as it travels.
struct Frame : Event {
    std::unique_ptr<Packet> packet;
    unsigned link = 0;
    std::vector<unsigned> trace;
};

struct Timer : Event {
    uint64_t request = 0;
};

struct SendEnd : Event {
    unsigned link = 0;
};

struct Totals {
    uint64_t requests, answered, given_up, repeated, frames_sent, frames_received, frames_dropped, checksum;
};

class Simulation
{
  public:
    Totals totals{};
    uint64_t now = 0, events = 0;

    template <typename E> E *schedule(std::unique_ptr<E> event, Module *target, uint64_t delay)
    {
        E *raw = event.get();
        raw->time = now + delay;
        raw->number = next_number++;
        raw->target = target;
        queue.push_back(std::move(event));
        sift_up(queue.size() - 1);
        return raw;
    }

    void run()
    {
        while (!queue.empty()) {
            std::unique_ptr<Event> event = pop();
            if (event->is_cancelled)
                continue;
            now = event->time;
            events++;
            totals.checksum = (totals.checksum ^ now ^ event->number) * 0x9e3779b97f4a7c15u;
            Module *target = event->target;
            target->handle(std::move(event));
        }
    }

  private:
    std::vector<std::unique_ptr<Event>> queue; // a binary heap
    uint64_t next_number = 0;

    bool is_before(size_t a, size_t b) const
    {
        return queue[a]->time != queue[b]->time ? queue[a]->time < queue[b]->time : queue[a]->number < queue[b]->number;
    }
    void sift_up(size_t place)
    {
        for (; place && is_before(place, (place - 1) / 2); place = (place - 1) / 2)
            std::swap(queue[place], queue[(place - 1) / 2]);
    }
    std::unique_ptr<Event> pop()
    {
        std::swap(queue.front(), queue.back());
        std::unique_ptr<Event> first = std::move(queue.back());
        queue.pop_back();
        for (size_t place = 0;;) {
            size_t least = place;
            for (size_t child = 2 * place + 1; child <= 2 * place + 2 && child < queue.size(); child++) {
                if (is_before(child, least))
                    least = child;
            }
            if (least == place)
                return first;
            std::swap(queue[place], queue[least]);
            place = least;
        }
    }
};

uint64_t pause = 20000;
constexpr uint64_t link_delay = 5000, byte_time = 8, retry_delay = 2000000;
constexpr unsigned queue_room = 8, tries_max = 4;

class Router;

// A host and its router share a number; the host talks to its own router only.
class Host : public Module
{
  public:
    Host(Simulation &given, unsigned number, unsigned host_count, uint64_t requests, uint64_t seed)
        : simulation(given), self(number), hosts(host_count), left(requests)
    {
        random_seed(&random, seed * 7919 + number);
        schedule_next();
    }
    void handle(std::unique_ptr<Event> event) override;
    Router *router = nullptr;

  private:
    struct Pending {
        Timer *timer;
        unsigned to, tries;
    };
    Simulation &simulation;
    const unsigned self, hosts;
    uint64_t left, next_request = 0;
    random_source random;
    std::map<uint64_t, Pending> pending;
    Timer *next_send = nullptr;

    void schedule_next()
    {
        next_send = left ? simulation.schedule(std::make_unique<Timer>(), this, random_between(&random, 500, 2 * pause))
                         : nullptr;
    }
    void request_send(uint64_t request, Pending &entry);
    void packet_send(uint64_t request, unsigned to, bool is_answer);
    void packet_receive(Packet &packet);
    void timer_expired(const Timer &timer);
};

class Router : public Module
{
  public:
    Router(Simulation &given, unsigned number, unsigned router_count)
        : simulation(given), self(number), routers(router_count), outgoing(3)
    {
        span = 1;
        while (span * span < routers)
            span++;
    }
    void handle(std::unique_ptr<Event> event) override
    {
        if (auto *end = dynamic_cast<SendEnd *>(event.get())) {
            outgoing[end->link].is_busy = false;
            send_next(end->link);
            return;
        }
        simulation.totals.frames_received++;
        route(std::unique_ptr<Frame>(static_cast<Frame *>(event.release())));
    }
    void accept(std::unique_ptr<Frame> frame)
    {
        route(std::move(frame));
    }
    Host *host = nullptr;
    std::vector<Router *> *all = nullptr;

  private:
    struct Outgoing {
        std::deque<std::unique_ptr<Frame>> waiting;
        bool is_busy = false;
    };
    Simulation &simulation;
    const unsigned self, routers;
    unsigned span;
    std::vector<Outgoing> outgoing; // to the next router, to the one before, across

    unsigned beyond(unsigned link) const
    {
        const unsigned step = link == 0 ? 1 : link == 1 ? routers - 1 : span;
        return (self + step) % routers;
    }
    void route(std::unique_ptr<Frame> frame);
    void send_next(unsigned link);
};

void Router::route(std::unique_ptr<Frame> frame)
{
    frame->trace.push_back(self);
    if (frame->packet->to == self) {
        simulation.schedule(std::move(frame), host, link_delay / 10);
        return;
    }
    const unsigned forward = (frame->packet->to + routers - self) % routers;
    const unsigned link = forward >= span && forward < routers - 1 ? 2 : forward <= routers / 2 ? 0 : 1;
    if (outgoing[link].waiting.size() >= queue_room) {
        simulation.totals.frames_dropped++;
        return; // and the frame, its packet and its trace go
    }
    outgoing[link].waiting.push_back(std::move(frame));
    send_next(link);
}

// Each link takes a new frame: the packet moves over, the old wrapping goes.
void Router::send_next(unsigned link)
{
    Outgoing &line = outgoing[link];
    if (line.is_busy || line.waiting.empty())
        return;
    std::unique_ptr<Frame> old = std::move(line.waiting.front());
    line.waiting.pop_front();
    auto frame = std::make_unique<Frame>();
    frame->packet = std::move(old->packet);
    frame->trace = old->trace;
    frame->link = link;
    const uint64_t sending = byte_time * (40 + 4 * frame->packet->payload.size());
    simulation.totals.frames_sent++;
    simulation.schedule(std::move(frame), (*all)[beyond(link)], sending + link_delay);
    auto end = std::make_unique<SendEnd>();
    end->link = link;
    simulation.schedule(std::move(end), this, sending);
    line.is_busy = true;
}

void Host::handle(std::unique_ptr<Event> event)
{
    if (auto *frame = dynamic_cast<Frame *>(event.get())) {
        packet_receive(*frame->packet);
        return;
    }
    auto *timer = static_cast<Timer *>(event.get());
    if (timer != next_send) {
        timer_expired(*timer);
        return;
    }
    left--;
    simulation.totals.requests++;
    const uint64_t request = next_request++;
    const unsigned to = (self + 1 + static_cast<unsigned>(random_below(&random, hosts - 1))) % hosts;
    request_send(request, pending.emplace(request, Pending{nullptr, to, 0}).first->second);
    schedule_next();
}

void Host::request_send(uint64_t request, Pending &entry)
{
    entry.tries++;
    packet_send(request, entry.to, false);
    auto timer = std::make_unique<Timer>();
    timer->request = request;
    entry.timer = simulation.schedule(std::move(timer), this, retry_delay * entry.tries);
}

void Host::packet_send(uint64_t request, unsigned to, bool is_answer)
{
    auto packet = std::make_unique<Packet>();
    packet->name = (is_answer ? "answer-from-host-" : "request-from-host-") + std::to_string(self) + "-number-" +
                   std::to_string(request);
    packet->request = request;
    packet->from = self;
    packet->to = to;
    packet->is_answer = is_answer;
    packet->payload.assign(random_between(&random, 1, is_answer ? 350 : 40), self);
    auto frame = std::make_unique<Frame>();
    frame->packet = std::move(packet);
    router->accept(std::move(frame));
}

void Host::packet_receive(Packet &packet)
{
    simulation.totals.checksum += packet.name.size() + packet.payload.back();
    if (!packet.is_answer) {
        packet_send(packet.request, packet.from, true);
        return;
    }
    const auto entry = pending.find(packet.request);
    if (entry == pending.end())
        return; // a second answer to a repeated request
    entry->second.timer->is_cancelled = true;
    pending.erase(entry);
    simulation.totals.answered++;
}

void Host::timer_expired(const Timer &timer)
{
    const auto entry = pending.find(timer.request);
    if (entry->second.tries < tries_max) {
        simulation.totals.repeated++;
        request_send(timer.request, entry->second);
        return;
    }
    pending.erase(entry);
    simulation.totals.given_up++;
}
} // namespace

int main(int argc, char **argv)
{
    uint64_t hosts = 64, requests = 400;
    const struct arg args[] = {
        {"hosts", ARG_COUNT, &hosts, "hosts, each with a router, 3 to 65536"},
        {"requests", ARG_COUNT, &requests, "requests each host sends"},
        {"pause", ARG_COUNT, &pause, "mean time between a host's requests in simulated ns: the load"},
    };
    ARGS_READ("netsim", argc, argv, args);
    if (hosts < 3 || hosts > 65536 || pause < 1000)
        args_reject("hosts, pause", "3 to 65536 hosts, pause at least 1000");
    Totals totals;
    uint64_t events;
    const uint64_t begin_ns = clock_ns();
    {
        Simulation simulation;
        const auto count = static_cast<unsigned>(hosts);
        std::vector<std::unique_ptr<Host>> all_hosts;
        std::vector<std::unique_ptr<Router>> owned;
        std::vector<Router *> all_routers;
        for (unsigned i = 0; i < count; i++) {
            all_hosts.push_back(std::make_unique<Host>(simulation, i, count, requests, args_seed()));
            owned.push_back(std::make_unique<Router>(simulation, i, count));
            all_routers.push_back(owned.back().get());
            all_hosts[i]->router = all_routers[i];
            all_routers[i]->host = all_hosts[i].get();
        }
        for (Router *router : all_routers)
            router->all = &all_routers;
        simulation.run();
        totals = simulation.totals;
        events = simulation.events;
    }
    const uint64_t end_ns = clock_ns();
    uint64_t errors = totals.requests != hosts * requests;
    errors += totals.answered + totals.given_up != totals.requests;
    errors += totals.frames_sent != totals.frames_received;
    errors += objects_alive != 0;
    result_begin("netsim", 1, events, end_ns - begin_ns);
    result_count("requests", totals.requests);
    result_count("repeated", totals.repeated);
    result_count("given_up", totals.given_up);
    result_count("frames", totals.frames_sent);
    result_count("dropped", totals.frames_dropped);
    result_count("checksum", totals.checksum);
    return result_end(errors);
}
