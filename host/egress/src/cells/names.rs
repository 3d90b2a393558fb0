//! Names in a cell: each gets an address that was made up, and no question leaves the machine.

use super::{Naming, Network, PAUSE};
use base::target::Target;
use hickory_resolver::proto::op::{Message, MessageType, OpCode, ResponseCode};
use hickory_resolver::proto::rr::rdata::{A, AAAA};
use hickory_resolver::proto::rr::{DNSClass, RData, Record, RecordType};
use policy::own_cell::{CELL, LOCALHOST};
use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use tokio::net::UdpSocket;

/// Names that have an address at one time; then the oldest gives its own away.
const PLACES: u16 = 4096;
/// Seconds for which a program may remember an address.
const REMEMBERED: u32 = 1;
/// The longest question.
const QUESTION: usize = 1500;

/// The addresses that were made up.
#[derive(Default)]
pub(super) struct MadeUp {
    places: HashMap<String, u16>,
    names: Vec<String>,
    next: u16,
}

impl MadeUp {
    /// The address of a name, in 127.1.0.0/16, which leads to the cell's own loopback.
    fn address(&mut self, name: &str) -> Ipv4Addr {
        if let Some(place) = self.places.get(name) {
            return at(*place);
        }
        let place = self.next;
        self.next = (place + 1) % PLACES;
        match self.names.get_mut(usize::from(place)) {
            Some(oldest) => {
                self.places.remove(oldest.as_str());
                name.clone_into(oldest);
            }
            None => self.names.push(name.to_owned()),
        }
        self.places.insert(name.to_owned(), place);
        at(place)
    }

    /// The name that was given an address.
    pub(super) fn name(&self, address: Ipv4Addr) -> Option<String> {
        let [127, 1, high, low] = address.octets() else { return None };
        let place = u16::from_be_bytes([high, low]).checked_sub(1)?;
        self.names.get(usize::from(place)).cloned()
    }
}

fn at(place: u16) -> Ipv4Addr {
    let [high, low] = (place + 1).to_be_bytes();
    Ipv4Addr::new(127, 1, high, low)
}

/// Answers the questions of a cell.
pub(super) async fn answer(network: Arc<Network>, socket: UdpSocket) {
    let mut question = [0; QUESTION];
    loop {
        let Ok((length, asker)) = socket.recv_from(&mut question).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let question = Message::from_vec(&question[..length]);
        let said = question.ok().and_then(|question| reply(&network, &question)).and_then(|said| said.to_vec().ok());
        if let Some(said) = said {
            // Who does not wait for it any more does not get it.
            let _ = socket.send_to(&said, asker).await;
        }
    }
}

fn reply(network: &Network, question: &Message) -> Option<Message> {
    let asked = question.queries.first().filter(|_| question.metadata.message_type == MessageType::Query)?;
    let mut said = Message::response(question.metadata.id, question.metadata.op_code);
    said.metadata.recursion_desired = question.metadata.recursion_desired;
    said.metadata.recursion_available = true;
    said.add_query(asked.clone());
    if question.metadata.op_code != OpCode::Query || question.queries.len() != 1 {
        said.metadata.response_code = ResponseCode::NotImp;
        return Some(said);
    }
    let name = asked.name().to_ascii().trim_end_matches('.').to_ascii_lowercase();
    // A port has to be given; which, says nothing of the name.
    let Ok(target) = Target::of_server(&name, 443) else {
        said.metadata.response_code = ResponseCode::NXDomain;
        return Some(said);
    };
    let is_local = name == LOCALHOST || name == CELL || name.ends_with(".localhost");
    if network.naming == Naming::Unknown && !is_local {
        said.metadata.response_code = ResponseCode::NXDomain;
        return Some(said);
    }
    let is_of_internet = asked.query_class() == DNSClass::IN;
    if asked.query_type() == RecordType::AAAA && is_of_internet && is_local {
        let address = RData::AAAA(AAAA(Ipv6Addr::LOCALHOST));
        said.add_answer(Record::from_rdata(asked.name().clone(), REMEMBERED, address));
    }
    if asked.query_type() == RecordType::A && is_of_internet {
        let address =
            if is_local { Ipv4Addr::LOCALHOST } else { network.made_up.lock().address(&target.host().to_string()) };
        said.add_answer(Record::from_rdata(asked.name().clone(), REMEMBERED, RData::A(A(address))));
    }
    Some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_address_until_thousands_came_after_it() {
        let mut made_up = MadeUp::default();
        let first = made_up.address("first.example");
        assert_eq!(first, Ipv4Addr::new(127, 1, 0, 1));
        assert_eq!(made_up.address("first.example"), first);
        for number in 1..PLACES {
            let name = format!("{number}.example");
            let address = made_up.address(&name);
            assert_eq!(made_up.name(address), Some(name));
        }
        assert_eq!(made_up.name(first).as_deref(), Some("first.example"));
        assert_eq!(made_up.address("one.more.example"), first);
        assert_eq!(made_up.name(first).as_deref(), Some("one.more.example"));
        assert_ne!(made_up.address("first.example"), first);
        assert_eq!(made_up.places.len(), usize::from(PLACES));
    }

    #[test]
    fn what_was_never_given_is_no_name() {
        let made_up = MadeUp::default();
        for address in [[127, 0, 0, 1], [127, 1, 0, 0], [127, 1, 0, 1], [127, 1, 255, 255], [8, 8, 8, 8]] {
            assert_eq!(made_up.name(address.into()), None);
        }
    }
}
