-- The objects of the paper's test under the paper's names, as far as both sides have them. initiator.sql and target.sql hold
-- the rest, ledger.sql what the final check needs. One database plays both sides in the plain demo; with several servers each has its own.
--
-- In the paper both services have the same name. Where they share one database they cannot, so the initiator's is called
-- S_Sender here.

select parley.create_message_type('//MySSB.com/Lab/M_Test', validation => 'NONE');
select parley.create_contract('//MySSB.com/Lab/C_Test', array['//MySSB.com/Lab/M_Test'], sent_by => 'ANY');
