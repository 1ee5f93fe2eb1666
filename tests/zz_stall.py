import sys,time,threading
sys.path[:0]=['/work/wt/groups/tests/apache','/work/wt/groups/tests','/work/wt/groups/tests/same_request']
import pathlib,tempfile,broker,harness,group_cases as g
home=pathlib.Path(tempfile.mkdtemp())
b=broker.Broker(home,{"group.initial.rebalance.delay.ms":"0"}).start()
try:
    k=harness.Subject(b.bootstrap,"s"); o=harness.Subject(b.bootstrap,"o")
    grp=g.ready(k); og=g.ready(o); m=g.stable(o,og)
    worst=[0]; stop=[False]
    def beat():
        while not stop[0]:
            t=time.monotonic(); o.quiet("Heartbeat",4,g.heartbeat_body(og,m)); worst[0]=max(worst[0],time.monotonic()-t)
    th=threading.Thread(target=beat); th.start(); time.sleep(1); print("idle worst ms",worst[0]*1e3); 
    import struct
    for label,assign in (("one",[(None,b"x"*(48<<20))]),("tiny",None)):
        member=g.new_id(k,grp); a=k.quiet("JoinGroup",9,g.join_body(grp,member))
        body=g.sync_body(grp,member,a["generation_id"],[(member,b"x"*(48<<20))],protocol_type="consumer",protocol_name="range")
        if label=="tiny":
            from kafka_wire import codec
            one=codec.encode(codec.api("SyncGroup").request,5,g.sync_body(grp,member,a["generation_id"],[("m",b"")],protocol_type="consumer",protocol_name="range"))
            # compact array count is before: find b'\x02\x02m\x01\x00'
            i=one.rindex(b'\x02\x02m\x01\x00')
            n=12_000_000
            def uv(x):
                out=b''
                while x>=128: out+=bytes([x&127|128]); x>>=7
                return out+bytes([x])
            body=one[:i]+uv(n+1)+b'\x02m\x01\x00'*n+one[i+5:]
        worst[0]=0; t=time.monotonic()
        c=k.open(); c.socket.settimeout(60)
        print(label,c.call("SyncGroup",5,body)["error_code"],"took",time.monotonic()-t); time.sleep(.5)
        print(" worst heartbeat ms",worst[0]*1e3)
        k.quiet("LeaveGroup",5,{"group_id":grp,"members":[{"member_id":member}]})
    stop[0]=True; th.join()
    print(open(f"/proc/{b.process.pid}/status").read().split("VmHWM")[1][:40])
    b.stop()
finally: print(b.log_text()[-1500:] if hasattr(b,'log_text') else [x for x in dir(b) if x[0]!='_'], b.process.poll()); b.kill()
